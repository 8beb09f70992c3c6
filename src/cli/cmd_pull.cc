#include "cli/commands.h"
#include "cli/model_loading.h"

namespace octavo::cli {

Result<void> run_pull(const Invocation& invocation, Terminal& terminal) {
  OCTAVO_TRY(const std::string path, pull_model(invocation.positionals[0], terminal));
  terminal.write(path + "\n");
  return {};
}

}  // namespace octavo::cli
