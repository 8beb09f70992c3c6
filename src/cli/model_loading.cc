#include "cli/model_loading.h"

#include <fmt/format.h>

#include <cstdlib>

#include "engine/catalog.h"
#include "formats/gguf_tokenizer.h"

namespace octavo::cli {
namespace {

bool isa_is_forced() {
  const char* forced = std::getenv("OCTAVO_ISA");
  return forced && *forced;
}

}  // namespace

Result<GgufFile> open_model_file(const std::string& model) {
  OCTAVO_TRY(const std::string path, resolve_model(model));
  return GgufFile::open(path);
}

Result<Tokenizer> load_tokenizer(const GgufFile& file) {
  OCTAVO_TRY(TokenizerSpec spec, read_tokenizer_spec(file));
  return Tokenizer::create(std::move(spec));
}

Result<std::vector<TokenId>> encode_text(const Tokenizer& tokenizer, std::string_view text,
                                         Tokenizer::EncodeOptions options, Terminal& terminal) {
  EncodeStats stats;
  OCTAVO_TRY(std::vector<TokenId> ids, tokenizer.encode(text, options, stats));
  if (stats.dropped_bytes > 0)
    terminal.say(fmt::format(
        "octavo: note: {} of the text's bytes are not in the model's vocabulary and were left out",
        stats.dropped_bytes));
  return ids;
}

Result<LoadedEngine> load_with_progress(EngineOptions options, Terminal& terminal,
                                        Result<LoadedEngine> (*load)(const EngineOptions&)) {
  OCTAVO_TRY(options.model, resolve_model(options.model));
  options.on_progress = [&](double done) {
    terminal.progress(fmt::format("Loading {:.0f} %", 100 * done));
  };
  auto engine = load(options);
  terminal.clear_progress();
  if (engine)
    for (const std::string& note : engine->notes)
      terminal.say(fmt::format("octavo: note: {}", note));
  if (engine && engine->isa == "ref" && !isa_is_forced())
    terminal.say("octavo: note: this CPU has no AVX2; the plain path runs, many times slower");
  return engine;
}

std::function<void(int done, int total)> prefill_progress(Terminal& terminal) {
  return [&](int done, int total) {
    if (done == total)
      terminal.clear_progress();
    else
      terminal.progress(fmt::format("Reading the prompt: {} of {} tokens", done, total));
  };
}

}  // namespace octavo::cli
