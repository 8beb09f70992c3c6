#include "cli/model_loading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "engine/admission.h"
#include "engine/catalog.h"
#include "formats/open_model.h"
#include "hub/pull.h"

namespace octavo::cli {
namespace {

constexpr double kMega = 1e6;

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

bool is_short_name(std::string_view model) {
  return std::ranges::any_of(catalog(),
                             [&](const CatalogEntry& entry) { return entry.name == model; });
}

bool isa_is_forced() { return !variable("OCTAVO_ISA").value_or("").empty(); }

}  // namespace

Result<std::string> pull_model(const std::string& model, Terminal& terminal) {
  if (is_short_name(model)) return resolve_model(model);  // or how to fetch it
  OCTAVO_TRY(const HubName name, parse_hub_name(model));
  OCTAVO_TRY(hub::HubOptions options, hub::hub_options(&variable));
  options.on_note = [&](const std::string& note) { terminal.say("octavo: note: " + note); };
  options.on_progress = [&](int64_t done, int64_t total) {
    const auto part = static_cast<double>(done) / static_cast<double>(total);
    terminal.progress(fmt::format("Fetching {}: {:.0f} % of {:.1f} MB", name.text(), 100 * part,
                                  static_cast<double>(total) / kMega));
  };
  auto path = hub::pull(name, options);
  terminal.clear_progress();
  return path;
}

Result<std::string> find_model(const std::string& model, Terminal& terminal) {
  auto found = resolve_model(model);
  const bool may_pull =
      !found && found.error().code == ErrorCode::not_found && looks_like_hub_name(model);
  if (!may_pull) return found;
  terminal.say(fmt::format("octavo: note: {} is not here, so it is fetched", model));
  return pull_model(model, terminal);
}

Result<std::unique_ptr<ModelSource>> open_model_file(const std::string& model) {
  OCTAVO_TRY(const std::string path, resolve_model(model));
  return open_model(path);
}

Result<Tokenizer> load_tokenizer(const ModelSource& file) {
  OCTAVO_TRY(TokenizerSpec spec, file.tokenizer());
  return Tokenizer::create(std::move(spec));
}

Result<LoadedEngine> load_generator(EngineOptions options, Terminal& terminal,
                                    Result<LoadedEngine> (*load)(const EngineOptions&)) {
  OCTAVO_TRY(LoadedEngine engine, load_with_progress(std::move(options), terminal, load));
  if (engine.pooling.is_all) return fail(ErrorCode::unsupported, std::string(kEncoderWritesNoText));
  return engine;
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
  OCTAVO_TRY(options.model, find_model(options.model, terminal));
  options.on_progress = [&, told = options.on_progress](double done) {
    if (told) told(done);
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
