#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "bench/speculative.h"
#include "cli/bench_output.h"
#include "cli/commands.h"
#include "cli/model_loading.h"
#include "cli/sampling_options.h"
#include "cli/table.h"
#include "formats/quote.h"
#include "spec/speculative_config.h"

namespace octavo::cli {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

std::string config_of(std::string_view method, const std::string& model = {}) {
  nlohmann::ordered_json config = {{"method", method}, {"num_speculative_tokens", 8}};
  if (!model.empty()) config["model"] = model;
  return config.dump();
}

std::string method_name(const SpeculativeConfig& config) {
  std::vector<std::string_view> names;
  for (const DraftMethod method : config.methods) names.push_back(name(method));
  return fmt::format("{}", fmt::join(names, ","));
}

// Two configs of the same methods are told apart by all they say.
Result<std::vector<SpeculativeMethod>> named(const std::vector<std::string>& configs) {
  std::vector<SpeculativeMethod> methods;
  for (const std::string& text : configs) {
    OCTAVO_TRY(const SpeculativeConfig config, parse_speculative_config(text));
    std::string called = method_name(config);
    const auto is_taken = [&](const SpeculativeMethod& other) { return other.name == called; };
    if (std::ranges::any_of(methods, is_taken)) called = text;
    methods.push_back({.name = called, .config = text});
  }
  return methods;
}

Result<double> read_share(const std::string& text) {
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  if (error == std::errc() && end == text.data() + text.size() && share >= 0 && share <= 1)
    return share;
  return fail(ErrorCode::invalid_argument,
              fmt::format("--synthetic-acceptance has {}; it takes numbers from 0 to 1 with commas "
                          "between, as in 0.6,0.8",
                          quote(text)));
}

Result<std::vector<SpeculativeMethod>> read_methods(const OptionValues& values) {
  std::vector<std::string> configs = values.all<std::string>("speculative_config");
  const bool is_synthetic = values.is_given("synthetic_acceptance");
  const std::string draft_model = values.text("draft_model");
  if (configs.empty() && !is_synthetic) {
    configs = {config_of("ngram"), config_of("suffix")};
    if (!draft_model.empty()) configs.push_back(config_of("draft_model", draft_model));
  } else if (!draft_model.empty() && !is_synthetic) {
    return fail(ErrorCode::invalid_argument,
                "--draft-model is for the default methods and synthetic guesses; name it as "
                "\"model\" in --speculative-config");
  }
  OCTAVO_TRY(std::vector<SpeculativeMethod> methods, named(configs));
  for (const std::string& text : split(values.text("synthetic_acceptance"))) {
    OCTAVO_TRY(const double share, read_share(text));
    methods.push_back({.name = "synthetic " + text, .config = {}, .synthetic = share});
  }
  return methods;
}

// The config that loads what the methods need beside the model: one draft model, and the layers
// that early_exit skips.
Result<std::string> config_to_load(const std::vector<SpeculativeMethod>& methods,
                                   const std::string& draft_model) {
  std::string model = draft_model, called;
  for (const SpeculativeMethod& method : methods) {
    OCTAVO_TRY(const SpeculativeConfig config, parse_speculative_config(method.config));
    if (config.uses(DraftMethod::early_exit) && !config.skip_layers)
      called = name(DraftMethod::early_exit);
    if (config.model.empty() || config.model == model) continue;
    if (!model.empty())
      return fail(ErrorCode::invalid_argument,
                  fmt::format("there may be one draft model in a run, and {} and {} are named",
                              quote(model), quote(config.model)));
    model = config.model;
  }
  if (!model.empty())
    called = std::string(name(DraftMethod::draft_model)) + (called.empty() ? "" : "," + called);
  return called.empty() ? std::string() : config_of(called, model);
}

std::vector<std::string> cells(const SpeculativeRow& row) {
  const bool guesses = row.method != "off";
  const auto percent = [](double share) { return fmt::format("{:.1f}", 100 * share); };
  return {row.task,
          fmt::format("{}", row.batch_size),
          row.method,
          fmt::format("{:.1f}", row.tok_s),
          guesses ? fmt::format("{:.2f} x", row.speedup) : "",
          guesses ? fmt::format("{:.2f}-{:.2f}", row.lowest, row.highest) : "",
          guesses ? percent(row.acceptance) : "",
          guesses ? fmt::format("{:.2f}", row.accepted_length) : "",
          fmt::format("{:.2f}", row.tokens_per_step),
          guesses ? percent(row.draft_share) : "",
          !guesses            ? ""
          : !row.same_answers ? "n/a"
          : *row.same_answers ? "yes"
                              : "NO"};
}

std::string predictions(const std::vector<SpeculativeRow>& rows) {
  std::vector<std::vector<std::string>> table = {
      {"task", "batch", "method", "cost of a guess", "predicted", "with", "measured", "of it %"}};
  for (const SpeculativeRow& row : rows)
    if (row.predicted)
      table.push_back({row.task, fmt::format("{}", row.batch_size), row.method,
                       fmt::format("{:.3f} steps", row.draft_cost),
                       fmt::format("{:.2f} x", row.predicted->speedup),
                       fmt::format("{}", row.predicted->num_drafts),
                       fmt::format("{:.2f} x", row.speedup),
                       fmt::format("{:.0f}", 100 * row.speedup / row.predicted->speedup)});
  return table.size() > 1 ? "\n" + format_table(table, "lrlrrrrr") : "";
}

std::string to_text(const std::vector<SpeculativeRow>& rows) {
  std::vector<std::vector<std::string>> table = {{"task", "batch", "method", "tok/s", "speed-up",
                                                  "range", "true %", "tok/guess", "tok/step",
                                                  "drafting %", "same answers"}};
  for (const SpeculativeRow& row : rows) table.push_back(cells(row));
  return format_table(table, "lrlrrrrrrrl") + predictions(rows);
}

// Of each task, at each batch size, the method that gains most.
std::vector<std::string> answers_of(const std::vector<SpeculativeRow>& rows) {
  std::vector<std::string> answers;
  for (const SpeculativeRow& off : rows) {
    if (off.method != "off") continue;
    const SpeculativeRow* best = nullptr;
    for (const SpeculativeRow& row : rows)
      if (row.task == off.task && row.batch_size == off.batch_size && row.change &&
          (!best || row.speedup > best->speedup))
        best = &row;
    if (best)
      answers.push_back(
          fmt::format("{}, batch {}: best with {}, {:.0f} tokens per second; {:.0f} "
                      "without guesses: {}.",
                      off.task, off.batch_size, best->method, best->tok_s, best->off_tok_s,
                      change_text(*best->change)));
  }
  return answers;
}

BenchResult to_result(std::vector<SpeculativeRow> rows, const std::string& model,
                      const SpeculativeOptions& options) {
  BenchResult result;
  result.title = "Guessing tokens ahead beside not guessing";
  result.model = model;
  result.settings = {{"output_len", fmt::format("{}", options.output_len)},
                     {"num_prompts", fmt::format("{}", options.num_prompts)},
                     {"repeat", fmt::format("{}", options.repeat)}};
  result.notes = {
      "speedup is by tokens per second of the steps that read no prompt, against the run without "
      "guesses of the same round; the median of the rounds. Other figures are of one round and "
      "count prompts too."};
  result.answer = answers_of(rows);
  result.headline = {"output_throughput"};
  for (SpeculativeRow& row : rows) {
    row.record.group = fmt::format("{}, batch {}", row.task, row.batch_size);
    result.runs.push_back(std::move(row.record));
  }
  return result;
}

Result<void> check_same(const std::vector<SpeculativeRow>& rows) {
  const auto wrong = std::ranges::find(rows, std::optional(false), &SpeculativeRow::same_answers);
  if (wrong == rows.end()) return {};
  return fail(ErrorCode::numeric_error,
              fmt::format("answers to {} at batch size {} with {} are not those without guesses; "
                          "please report this",
                          wrong->task, wrong->batch_size, wrong->method));
}

}  // namespace

Result<void> run_bench_speculative(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& values = invocation.options;
  OCTAVO_CHECK_OK(check_outputs(values));
  SpeculativeOptions options{.engine = read_engine_options(values), .methods = {}};
  OCTAVO_TRY(options.methods, read_methods(values));
  options.tasks = split(values.text("tasks"));
  options.batch_sizes.clear();
  for (const int64_t size : values.get<std::vector<int64_t>>("batch_size"))
    options.batch_sizes.push_back(static_cast<int>(size));
  options.output_len = values.integer("output_len");
  options.num_prompts = values.integer("num_prompts");
  options.repeat = values.integer("repeat");
  options.ignore_eos = values.flag("ignore_eos");
  options.engine.model = invocation.positionals[0];
  options.engine.max_num_seqs = std::ranges::max(options.batch_sizes);
  OCTAVO_TRY(options.engine.speculative_config,
             config_to_load(options.methods, values.text("draft_model")));
  options.on_progress = [&](int done, int total) {
    terminal.long_progress(fmt::format("octavo: round {} of {}", done + 1, total));
  };
  OCTAVO_TRY(LoadedEngine engine, load_generator(options.engine, terminal, load_model));
  // The check of weights takes a core.
  for (const PackJob* job : {engine.pack_job.get(), engine.draft.pack_job.get()})
    if (job) OCTAVO_CHECK_OK(job->verdict());
  auto rows = measure_speculation(engine, options);
  terminal.clear_progress();
  if (!rows) return tl::make_unexpected(rows.error());
  const std::string text = to_text(*rows);
  const Result<void> same = check_same(*rows);
  OCTAVO_CHECK_OK(show_result(to_result(std::move(*rows), invocation.positionals[0], options),
                              invocation, terminal, text));
  return same;
}

}  // namespace octavo::cli
