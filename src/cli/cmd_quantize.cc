#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>

#include "base/cores.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/model_loading.h"
#include "cli/perplexity.h"
#include "cli/stop_signals.h"
#include "cli/table.h"
#include "formats/quantize_file.h"
#include "formats/quote.h"
#include "formats/weight_source.h"
#include "model/model_config.h"

namespace octavo::cli {
namespace {

struct Perplexities {
  double before = 0, after = 0;
};

Result<DType> read_type(const OptionValues& options) {
  const auto type = dtype_from_name(options.text("type"));
  if (type) return *type;
  return fail(ErrorCode::invalid_argument,
              "--type is missing: the type to write, for example q8_0 or q4_k");
}

// Writing replaces what is read, while it is read.
Result<void> refuse_same_file(const ModelSource& in, const std::string& out) {
  struct stat facts {};
  if (::stat(out.c_str(), &facts) != 0) return {};
  for (const ModelFilePart& part : in.parts())
    if (part.identity.device == facts.st_dev && part.identity.inode == facts.st_ino)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} is a file that is read; name another one", quote(out)));
  return {};
}

Result<void> check_places(const ModelSource& in, const std::vector<std::string>& files,
                          bool overwrite) {
  for (const std::string& file : files) {
    OCTAVO_CHECK_OK(refuse_same_file(in, file));
    OCTAVO_CHECK_OK(GgufFileWriter::check_place(file, overwrite));
  }
  return {};
}

// A folder that cannot be used would become a file that cannot.
Result<void> check_usable(const std::string& in, const ModelSource& model) {
  std::error_code error;
  if (!std::filesystem::is_directory(in, error)) return {};
  OCTAVO_CHECK_OK(read_model_config(model));
  OCTAVO_CHECK_OK(load_tokenizer(model));
  return {};
}

int num_threads(const OptionValues& options) {
  const int asked = options.integer("threads"), cores = available_cores();
  return asked == 0 ? cores : std::min(asked, cores);
}

Result<double> perplexity_of(const std::string& model, const OptionValues& options,
                             Terminal& terminal) {
  EngineOptions engine;
  engine.model = model;
  engine.threads = options.integer("threads");
  OCTAVO_TRY(const PerplexityScores scores,
             measure_perplexity(std::move(engine), options.text("perplexity"),
                                options.integer("context"), terminal));
  return scores.perplexity();
}

std::string blocks_note(const TensorView& tensor, const TensorPlan& plan) {
  return fmt::format("octavo: note: {} is {}: its rows of {} are no whole number of {}'s blocks",
                     quote(tensor.name), name(plan.type), tensor.cols(), name(*plan.instead_of));
}

// What the user would not expect of the result.
void say_notes(const WeightSource& source, const QuantizeRules& rules, Terminal& terminal) {
  for (const std::string& note : source.notes) terminal.say("octavo: note: " + note);
  int num_again = 0, num_other = 0;
  const TensorView* first_other = nullptr;
  for (const TensorView& tensor : source.tensors) {
    const TensorPlan plan = plan_tensor(tensor, rules);
    if (info(tensor.type).quantized && plan.type != tensor.type) ++num_again;
    if (!plan.instead_of) continue;
    if (num_other++ == 0) first_other = &tensor;
  }
  if (num_again > 0)
    terminal.say(
        fmt::format("octavo: note: {} tensors are quantised already; what that took from "
                    "them is lost, better begin with f32 or bf16",
                    num_again));
  if (!first_other) return;
  terminal.say(blocks_note(*first_other, plan_tensor(*first_other, rules)) +
               (num_other > 1 ? fmt::format(", nor are those of {} others", num_other - 1) : ""));
}

Result<QuantizeReport> quantize(const WeightSource& source, const std::string& path,
                                QuantizeOptions quantization, const OptionValues& options,
                                Terminal& terminal) {
  OCTAVO_TRY(const auto pool, ThreadPool::create(num_threads(options)));
  StopSignals interrupt({SIGINT, SIGTERM, SIGHUP});
  quantization.stop = interrupt.first();
  quantization.on_progress = [&](size_t i, size_t count) {
    terminal.progress(
        fmt::format("Tensor {} of {}: {}", i + 1, count, quote(source.tensors[i].name)));
  };
  auto report = quantize_to_file(source, path, quantization, *pool);
  terminal.clear_progress();
  return report;
}

Json to_json(const QuantizeReport& report, uint64_t bytes_before,
             const std::optional<Perplexities>& perplexities) {
  Json json = {{"file_bytes_before", bytes_before},
               {"file_bytes", report.file_bytes},
               {"files", report.files}};
  json["types"] = Json::object();
  for (const auto& [type, figures] : report.types)
    json["types"][std::string(name(type))] = {{"tensors", figures.num_tensors},
                                              {"elements", figures.elements},
                                              {"bytes_before", figures.bytes_before},
                                              {"bytes", figures.bytes_after},
                                              {"relative_rms_error", figures.relative_error()}};
  if (perplexities)
    json["perplexity"] = {{"before", perplexities->before}, {"after", perplexities->after}};
  return json;
}

std::string bytes_text(uint64_t bytes) { return human_bytes(static_cast<int64_t>(bytes)); }

std::string to_text(const QuantizeReport& report, uint64_t bytes_before,
                    const std::optional<Perplexities>& perplexities) {
  std::vector<std::vector<std::string>> rows = {
      {"type", "tensors", "before", "after", "rms error"}};
  for (const auto& [type, figures] : report.types)
    rows.push_back({std::string(name(type)), fmt::format("{}", figures.num_tensors),
                    bytes_text(figures.bytes_before), bytes_text(figures.bytes_after),
                    fmt::format("{:.3g} %", 100 * figures.relative_error())});
  rows.push_back({report.files.size() == 1 ? "file" : "files", "", bytes_text(bytes_before),
                  bytes_text(report.file_bytes), ""});
  std::string out = format_table(rows, "lrrrr");
  if (report.files.size() > 1)
    out += fmt::format("{} files; MODEL is any of them: {} to {}\n", report.files.size(),
                       report.files.front(), report.files.back());
  if (perplexities)
    out += fmt::format("perplexity {:.4f} before, {:.4f} after ({:+.2f} %)\n", perplexities->before,
                       perplexities->after, 100 * (perplexities->after / perplexities->before - 1));
  return out;
}

}  // namespace

Result<void> run_quantize(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  const std::string& out = invocation.positionals[1];
  OCTAVO_TRY(const DType type, read_type(options));
  OCTAVO_TRY(const std::string in, find_model(invocation.positionals[0], terminal));
  OCTAVO_TRY(const OpenWeightSource opened, open_weight_source(in));
  OCTAVO_CHECK_OK(check_usable(in, *opened.model));
  const WeightSource& source = opened.weights;
  const QuantizeOptions quantization = {
      .rules = make_rules(type, options.flag("pure"), source.tensors, source.num_experts),
      .overwrite = options.flag("overwrite"),
      .max_shard_bytes = static_cast<uint64_t>(options.get<int64_t>("max_shard_size"))};
  OCTAVO_TRY(const std::vector<std::string> files, quantized_files(source, out, quantization));
  OCTAVO_CHECK_OK(check_places(*opened.model, files, quantization.overwrite));
  say_notes(source, quantization.rules, terminal);
  std::optional<Perplexities> perplexities;
  const bool measures = !options.text("perplexity").empty();
  if (measures) {
    OCTAVO_TRY(const double before, perplexity_of(in, options, terminal));
    perplexities = Perplexities{.before = before};
  }
  OCTAVO_TRY(const QuantizeReport report, quantize(source, out, quantization, options, terminal));
  if (measures) {
    OCTAVO_TRY(perplexities->after, perplexity_of(files.front(), options, terminal));
  }
  const uint64_t bytes_before = opened.model->size();
  terminal.write(options.flag("json") ? dump_line(to_json(report, bytes_before, perplexities), 2)
                                      : to_text(report, bytes_before, perplexities));
  return {};
}

}  // namespace octavo::cli
