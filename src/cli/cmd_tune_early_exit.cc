#include <fmt/format.h>

#include "bench/exit_tuning.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/json_output.h"
#include "cli/model_loading.h"
#include "cli/output_file.h"
#include "cli/table.h"
#include "cli/tuning_text.h"
#include "engine/catalog.h"
#include "engine/exit_plan.h"
#include "formats/open_model.h"
#include "formats/weight_types.h"

namespace octavo::cli {
namespace {

// Less is noise, or not worth the trouble.
constexpr double kWorthIt = 1.02;

std::string layers_text(std::span<const int> layers) {
  return fmt::format("{}", fmt::join(layers, " "));
}

EngineOptions read_engine(const OptionValues& options) {
  EngineOptions engine;
  engine.dtype = options.text("dtype");
  engine.quantization = options.text("quantization");
  engine.threads = options.integer("threads");
  if (options.flag("pack_cache")) engine.pack_folder = packs_folder();
  return engine;
}

Result<ExitTuning> search(EngineOptions engine_options, const std::string& text, int places,
                          Terminal& terminal) {
  OCTAVO_TRY(const auto source, open_model_file(engine_options.model));
  OCTAVO_TRY(engine_options, search_engine_options(std::move(engine_options), *source, places));
  OCTAVO_TRY(const LoadedEngine engine,
             load_generator(std::move(engine_options), terminal, load_model));
  terminal.progress("Reading the text");
  const auto tuning = tune_early_exit(
      engine,
      {.text = text, .num_places = places, .on_step = [&](const ExitCandidate& step) {
         terminal.progress(fmt::format("{} layers skipped: {:.2f}x predicted",
                                       step.skipped_layers.size(), step.prediction.speedup));
       }});
  terminal.clear_progress();
  return tuning;
}

Result<ExitRuns> measure(EngineOptions engine_options, const ExitCandidate& candidate,
                         const ExitRunOptions& options, Terminal& terminal) {
  engine_options.max_num_seqs = 1;
  OCTAVO_TRY(const LoadedEngine engine,
             load_generator(std::move(engine_options), terminal, load_model));
  terminal.progress("Generating with drafts and without");
  auto runs = run_early_exit(engine, candidate, options);
  terminal.clear_progress();
  return runs;
}

Json to_json(const ExitCandidate& c) {
  return {{"skip_layers", c.skipped_layers},
          {"draft_confidence_threshold", c.prediction.threshold},
          {"num_speculative_tokens", c.prediction.num_drafts},
          {"drafted", c.prediction.drafted},
          {"accepted", c.prediction.accepted},
          {"predicted_speedup", c.prediction.speedup}};
}

Json to_json(const ExitTuning& tuning, const ExitRuns& runs) {
  Json json = to_json(tuning.chosen);
  json["measured_speedup"] = runs.always_speedup();
  json["measured_speedup_adaptive"] = runs.adaptive_speedup();
  json["measured_acceptance"] = runs.num_drafts > 0 ? static_cast<double>(runs.num_accepted) /
                                                          static_cast<double>(runs.num_drafts)
                                                    : 0.0;
  json["same_tokens"] = runs.same_tokens;
  json["num_layers"] = tuning.num_layers;
  json["step_s"] = tuning.costs.step_s;
  json["layer_s"] = tuning.costs.layer_s;
  json["verify_token_s"] = tuning.costs.verify_token_s;
  json["draft_s"] = tuning.draft_s;
  Json steps = Json::array();
  for (const ExitCandidate& step : tuning.steps) steps.push_back(to_json(step));
  json["steps"] = std::move(steps);
  return json;
}

std::string steps_table(const ExitTuning& tuning) {
  std::vector<std::vector<std::string>> rows = {
      {"skipped", "drafted", "accepted", "from", "drafts", "predicted", "layers"}};
  for (const ExitCandidate& step : tuning.steps) {
    const ExitPrediction& p = step.prediction;
    rows.push_back({fmt::format("{}", step.skipped_layers.size()),
                    fmt::format("{:.0f} %", 100 * p.drafted),
                    fmt::format("{:.0f} %", 100 * p.accepted), fmt::format("{:.2f}", p.threshold),
                    fmt::format("{}", p.num_drafts), fmt::format("{:.3f}x", p.speedup),
                    layers_text(step.skipped_layers)});
  }
  return format_table(rows, "rrrrrrl");
}

std::string runs_table(const ExitRuns& runs) {
  const auto row = [&](std::string what, double tok_s, double speedup) {
    return std::vector<std::string>{std::move(what), fmt::format("{:.1f} tok/s", tok_s),
                                    fmt::format("{:.3f}x", speedup)};
  };
  return format_table({row("without drafts", runs.plain_tok_s, 1),
                       row("drafts in every step", runs.always_tok_s, runs.always_speedup()),
                       row("drafts where they pay", runs.adaptive_tok_s, runs.adaptive_speedup())},
                      "lrr");
}

std::string verdict(const ExitTuning& tuning, const ExitRuns& runs) {
  if (runs.always_speedup() < kWorthIt)
    return fmt::format("It does not pay: a draft in every step gains less than {:.0f} %.\n",
                       100 * (kWorthIt - 1));
  return fmt::format(
      "It pays: --speculative-config '{{\"method\": \"early_exit\", \"num_speculative_tokens\": "
      "{}}}'\n",
      tuning.chosen.prediction.num_drafts);
}

std::string report(const ExitTuning& tuning, const ExitRuns& runs) {
  const ExitCosts& costs = tuning.costs;
  std::string text = fmt::format(
      "{} layers, {} tokens of text. A step takes {:.2f} ms, of which {:.2f} ms each layer; a "
      "further token to verify {:.2f} ms.\n\n",
      tuning.num_layers, tuning.num_tokens, 1e3 * costs.step_s, 1e3 * costs.layer_s,
      1e3 * costs.verify_token_s);
  text += steps_table(tuning);
  text += fmt::format("\nBest: layers {} skipped. A draft takes {:.2f} ms, {:.0f} % of a step.\n\n",
                      layers_text(tuning.chosen.skipped_layers), 1e3 * tuning.draft_s,
                      100 * tuning.draft_s / costs.step_s);
  text += runs_table(runs);
  if (runs.num_drafts > 0)
    text += fmt::format("{} of {} drafts came true; the text is {}.\n", runs.num_accepted,
                        runs.num_drafts, runs.same_tokens ? "the same" : "NOT the same");
  return text + "\n" + verdict(tuning, runs);
}

// Where `early_exit` looks for it, or where the user wants it.
Result<std::string> keep(const OptionValues& options, const EngineOptions& engine_options,
                         const std::string& text) {
  if (options.is_given("output")) {
    OCTAVO_CHECK_OK(write_output_file(options.text("output"), text));
    return options.text("output");
  }
  if (engine_options.pack_folder.empty()) return std::string();
  OCTAVO_TRY(const WeightTypes types,
             weight_types(engine_options.dtype, engine_options.quantization));
  OCTAVO_TRY(const auto source, open_model(engine_options.model, types));
  return store_exit_plan(engine_options.pack_folder, *source, text);
}

}  // namespace

Result<void> run_tune_early_exit(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  if (options.is_given("output")) OCTAVO_CHECK_OK(check_can_write(options.text("output")));
  EngineOptions engine_options = read_engine(options);
  OCTAVO_TRY(engine_options.model, find_model(invocation.positionals[0], terminal));
  std::string text(kTuningText);
  if (options.is_given("text")) {
    OCTAVO_TRY(text, read_text_file(options.text("text"), kMaxTextBytes));
  }
  OCTAVO_TRY(const ExitTuning tuning,
             search(engine_options, text, options.integer("places"), terminal));
  OCTAVO_TRY(const ExitRuns runs, measure(engine_options, tuning.chosen,
                                          {.text = text,
                                           .gen_tokens = options.integer("gen_tokens"),
                                           .runs = options.integer("runs")},
                                          terminal));
  const Json json = to_json(tuning, runs);
  terminal.write(options.flag("json") ? dump_line(json) : report(tuning, runs));
  OCTAVO_TRY(const std::string kept, keep(options, engine_options, dump_line(json, 2)));
  if (!kept.empty()) terminal.say(fmt::format("octavo: note: kept in {}", kept));
  return {};
}

}  // namespace octavo::cli
