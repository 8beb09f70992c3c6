#include "cli/commands.h"
namespace octavo::cli {
Result<void> run_generate(const Invocation&, Terminal&) { return {}; }
Result<void> run_chat(const Invocation&, Terminal&) { return {}; }
Result<void> run_perplexity(const Invocation&, Terminal&) { return {}; }
Result<void> run_bench(const Invocation&, Terminal&) { return {}; }
}
