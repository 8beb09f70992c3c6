#include "bench/result_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>

#include "base/file_map.h"
#include "bench/answer.h"
#include "bench/figures.h"
#include "bench/json_fields.h"
#include "formats/shallow_json.h"

namespace octavo {
namespace {

using nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kSchema = "octavo-bench-1";
constexpr size_t kMaxBytes = size_t{512} << 20;
constexpr int kMaxDepth = 8;
constexpr int kMostPriority = 1'000'000;

double round_time(double seconds) { return std::round(seconds * 1e6) / 1e6; }

// The columns of the steps: the same table writes and reads them.
template <class T>
struct Column {
  const char* name;
  T StepSample::*value;
};
constexpr std::array kTimes = {Column<double>{"time_s", &StepSample::time_s},
                               Column<double>{"step_s", &StepSample::step_s},
                               Column<double>{"scheduling_s", &StepSample::scheduling_s}};
constexpr std::array kCounts = {Column<int>{"running", &StepSample::running},
                                Column<int>{"waiting", &StepSample::waiting},
                                Column<int>{"prefill_tokens", &StepSample::prefill_tokens},
                                Column<int>{"decode_tokens", &StepSample::decode_tokens},
                                Column<int>{"padding_tokens", &StepSample::padding_tokens},
                                Column<int>{"blocks_held", &StepSample::blocks_held},
                                Column<int>{"blocks_cached", &StepSample::blocks_cached},
                                Column<int>{"blocks_free", &StepSample::blocks_free}};
constexpr std::array kLongCounts = {Column<int64_t>{"waste_tokens", &StepSample::waste_tokens}};

double stored(double value) { return round_time(value); }
int64_t stored(std::integral auto count) { return count; }

template <class Columns>
void write_columns(const std::vector<StepSample>& steps, const Columns& columns, OrderedJson& out) {
  for (const auto& column : columns) {
    OrderedJson list = OrderedJson::array();
    for (const StepSample& step : steps) list.push_back(stored(step.*column.value));
    out[column.name] = std::move(list);
  }
}

OrderedJson steps_json(const std::vector<StepSample>& steps) {
  OrderedJson out = OrderedJson::object();
  write_columns(steps, kTimes, out);
  write_columns(steps, kCounts, out);
  write_columns(steps, kLongCounts, out);
  return out;
}

OrderedJson request_json(const RequestRecord& request) {
  OrderedJson tokens = OrderedJson::array();
  for (const double time : request.token_s) tokens.push_back(round_time(time));
  OrderedJson out = {
      {"arrival_s", round_time(request.arrival_s)},
      {"scheduled_s",
       request.scheduled_s ? OrderedJson(round_time(*request.scheduled_s)) : OrderedJson(nullptr)},
      {"token_s", std::move(tokens)},
      {"end_s", round_time(request.end_s)},
      {"prompt_tokens", request.prompt_tokens},
      {"cached_tokens", request.cached_tokens},
      {"preemptions", request.preemptions},
      {"finish_reason", request.finish_reason}};
  if (request.reported_tokens) out["reported_tokens"] = *request.reported_tokens;
  if (request.priority != 0) out["priority"] = request.priority;
  return out;
}

OrderedJson block_row_json(const BlockMapRow& row) {
  OrderedJson owners = OrderedJson::array(), filled = OrderedJson::array();
  for (const BlockCell& cell : row.blocks) {
    owners.push_back(cell.owner);
    filled.push_back(cell.filled_percent);
  }
  return {{"time_s", round_time(row.time_s)},
          {"owners", std::move(owners)},
          {"filled_percent", std::move(filled)}};
}

// Where a value is not known: null.
using ServerColumn = std::pair<const char*, std::optional<double> ServerSample::*>;
constexpr std::array kServerColumns = {ServerColumn{"running", &ServerSample::running},
                                       ServerColumn{"waiting", &ServerSample::waiting},
                                       ServerColumn{"kv_usage", &ServerSample::kv_usage},
                                       ServerColumn{"memory_mib", &ServerSample::memory_mib},
                                       ServerColumn{"cpu_cores", &ServerSample::cpu_cores}};

OrderedJson server_json(const std::vector<ServerSample>& samples) {
  OrderedJson out = {{"time_s", OrderedJson::array()}};
  for (const ServerSample& sample : samples) out["time_s"].push_back(round_time(sample.time_s));
  for (const auto& [name, value] : kServerColumns) {
    OrderedJson& column = out[name] = OrderedJson::array();
    for (const ServerSample& sample : samples)
      column.push_back(sample.*value ? OrderedJson(*(sample.*value)) : OrderedJson(nullptr));
  }
  return out;
}

OrderedJson run_json(const RunResult& run, std::optional<double> cost_per_hour) {
  OrderedJson requests = OrderedJson::array(), map = OrderedJson::array();
  for (const RequestRecord& request : run.requests) requests.push_back(request_json(request));
  for (const BlockMapRow& row : run.block_map) map.push_back(block_row_json(row));
  OrderedJson out = {{"name", run.name},
                     {"settings", run.settings},
                     {"block_size", run.block_size},
                     {"num_blocks", run.num_blocks},
                     {"figures", figures_json(run, cost_per_hour)},
                     {"requests", std::move(requests)},
                     {"steps", steps_json(run.steps)},
                     {"block_map", std::move(map)}};
  if (run.x) out["x"] = *run.x;
  if (!run.series.empty()) out["series"] = run.series;
  if (!run.group.empty()) out["group"] = run.group;
  if (run.long_request) out["long_request"] = *run.long_request;
  if (!run.rounds.empty()) out["rounds"] = run.rounds;
  // Of runs against a server.
  if (!run.server.empty()) out["server"] = server_json(run.server);
  if (!run.goodput_ms.empty()) out["goodput_ms"] = run.goodput_ms;
  if (const auto failures = failures_of(run); !failures.empty()) out["failures"] = failures;
  return out;
}

// Reads each entry of a list with `read(entry, path)`.
template <class T, class Read>
Result<std::vector<T>> read_list(JsonFields& fields, const char* name, Read read) {
  OCTAVO_TRY(const json* list, fields.list(name));
  std::vector<T> out;
  out.reserve(list->size());
  for (const json& entry : *list) {
    OCTAVO_TRY(T value, read(entry, fmt::format("{}{}[{}]", fields.path(), name, out.size())));
    out.push_back(std::move(value));
  }
  return out;
}

template <class T>
Result<T> read_value(const json& value, const std::string& path);

template <>
Result<double> read_value<double>(const json& value, const std::string& path) {
  if (value.is_number() && JsonFields::in_range(value.get<double>())) return value.get<double>();
  return fail(ErrorCode::corrupt_file, fmt::format("'{}' is not a number from 0 to 1e12", path));
}

template <>
Result<std::string> read_value<std::string>(const json& value, const std::string& path) {
  if (value.is_string()) return value.get<std::string>();
  return fail(ErrorCode::corrupt_file, fmt::format("'{}' is not a string", path));
}

Result<int64_t> read_integer(const json& value, const std::string& path, int64_t low,
                             int64_t high) {
  if (const auto number = integer_between(value, low, high)) return *number;
  return fail(ErrorCode::corrupt_file,
              fmt::format("'{}' is not an integer from {} to {}", path, low, high));
}

template <>
Result<int> read_value<int>(const json& value, const std::string& path) {
  OCTAVO_TRY(const int64_t number, read_integer(value, path, 0, INT32_MAX));
  return static_cast<int>(number);
}

template <>
Result<int64_t> read_value<int64_t>(const json& value, const std::string& path) {
  return read_integer(value, path, 0, int64_t{1} << 53);
}

Result<std::map<std::string, std::string>> read_settings(JsonFields& fields) {
  std::map<std::string, std::string> out;
  const json* settings = fields.find("settings");
  if (!settings || !settings->is_object()) return fields.error("settings", "is not an object");
  for (const auto& [name, value] : settings->items()) {
    OCTAVO_TRY(out[name], read_value<std::string>(value, fields.path() + "settings"));
  }
  return out;
}

// Times follow each other, so that no latency is negative.
Result<void> check_order(const RequestRecord& request, const JsonFields& fields) {
  double latest = request.arrival_s;
  for (const double time : request.token_s) {
    if (time < latest) return fields.error("token_s", "goes back in time");
    latest = time;
  }
  if (request.end_s < latest) return fields.error("end_s", "is before the last token");
  if (request.scheduled_s && *request.scheduled_s < request.arrival_s)
    return fields.error("scheduled_s", "is before the arrival");
  if (request.cached_tokens > request.prompt_tokens)
    return fields.error("cached_tokens", "is more than the prompt has");
  return {};
}

Result<RequestRecord> read_request(const json& value, const std::string& path) {
  JsonFields fields(value, path + ".");
  RequestRecord request;
  OCTAVO_TRY(request.arrival_s, fields.number("arrival_s"));
  if (fields.find("scheduled_s")) {
    OCTAVO_TRY(request.scheduled_s, fields.number("scheduled_s"));
  }
  OCTAVO_TRY(request.token_s, read_list<double>(fields, "token_s", read_value<double>));
  OCTAVO_TRY(request.end_s, fields.number("end_s"));
  OCTAVO_TRY(request.prompt_tokens, fields.integer("prompt_tokens"));
  OCTAVO_TRY(request.cached_tokens, fields.integer("cached_tokens"));
  OCTAVO_TRY(request.preemptions, fields.integer("preemptions"));
  OCTAVO_TRY(request.finish_reason, fields.text("finish_reason"));
  if (fields.find("reported_tokens")) {
    OCTAVO_TRY(request.reported_tokens, fields.integer("reported_tokens"));
  }
  if (const json* priority = fields.find("priority")) {
    OCTAVO_TRY(const int64_t given,
               read_integer(*priority, path + ".priority", -kMostPriority, kMostPriority));
    request.priority = static_cast<int>(given);
  }
  OCTAVO_CHECK_OK(check_order(request, fields));
  OCTAVO_CHECK_OK(fields.finish());
  return request;
}

template <class Columns>
Result<void> read_columns(JsonFields& fields, const Columns& columns,
                          std::vector<StepSample>& steps) {
  for (const auto& column : columns) {
    using T = std::remove_reference_t<decltype(steps[0].*column.value)>;
    OCTAVO_TRY(const std::vector<T> values, read_list<T>(fields, column.name, read_value<T>));
    if (values.size() != steps.size())
      return fields.error(
          column.name, fmt::format("has {} values, 'time_s' has {}", values.size(), steps.size()));
    for (size_t i = 0; i < steps.size(); ++i) steps[i].*column.value = values[i];
  }
  return {};
}

Result<std::vector<StepSample>> read_steps(JsonFields& run) {
  const json* value = run.find("steps");
  if (!value) return run.error("steps", "is missing");
  JsonFields fields(*value, run.path() + "steps.");
  OCTAVO_TRY(const json* times, fields.list("time_s"));
  std::vector<StepSample> steps(times->size());
  OCTAVO_CHECK_OK(read_columns(fields, kTimes, steps));
  OCTAVO_CHECK_OK(read_columns(fields, kCounts, steps));
  OCTAVO_CHECK_OK(read_columns(fields, kLongCounts, steps));
  OCTAVO_CHECK_OK(fields.finish());
  return steps;
}

Result<BlockMapRow> read_block_row(const json& value, const std::string& path, int num_blocks) {
  JsonFields fields(value, path + ".");
  BlockMapRow row;
  OCTAVO_TRY(row.time_s, fields.number("time_s"));
  const auto read_owner = [](const json& owner, const std::string& place) {
    return read_integer(owner, place, BlockCell::kShared, INT32_MAX);
  };
  const auto read_percent = [](const json& percent, const std::string& place) {
    return read_integer(percent, place, 0, 100);
  };
  OCTAVO_TRY(const auto owners, read_list<int64_t>(fields, "owners", read_owner));
  OCTAVO_TRY(const auto filled, read_list<int64_t>(fields, "filled_percent", read_percent));
  const auto wanted = static_cast<size_t>(num_blocks);
  if (owners.size() != wanted || filled.size() != wanted)
    return fields.error("owners", fmt::format("and 'filled_percent' need {} values", num_blocks));
  for (size_t i = 0; i < wanted; ++i)
    row.blocks.push_back({static_cast<int32_t>(owners[i]), static_cast<int>(filled[i])});
  OCTAVO_CHECK_OK(fields.finish());
  return row;
}

Result<std::vector<ServerSample>> read_server(JsonFields& run) {
  const json* value = run.find("server");
  if (!value) return std::vector<ServerSample>();
  JsonFields fields(*value, run.path() + "server.");
  OCTAVO_TRY(const auto times, read_list<double>(fields, "time_s", read_value<double>));
  std::vector<ServerSample> samples(times.size());
  for (size_t i = 0; i < times.size(); ++i) samples[i].time_s = times[i];
  for (const auto& [name, member] : kServerColumns) {
    OCTAVO_TRY(const json* column, fields.list(name));
    if (column->size() != times.size())
      return fields.error(
          name, fmt::format("has {} values, 'time_s' has {}", column->size(), times.size()));
    for (size_t i = 0; i < times.size(); ++i) {
      if ((*column)[i].is_null()) continue;
      OCTAVO_TRY(samples[i].*member, read_value<double>((*column)[i], fields.path() + name));
    }
  }
  OCTAVO_CHECK_OK(fields.finish());
  return samples;
}

Result<std::map<std::string, double>> read_goodput(JsonFields& run) {
  std::map<std::string, double> out;
  const json* bounds = run.find("goodput_ms");
  if (!bounds) return out;
  if (!bounds->is_object()) return run.error("goodput_ms", "is not an object");
  for (const auto& [name, value] : bounds->items()) {
    OCTAVO_TRY(out[name], read_value<double>(value, run.path() + "goodput_ms"));
  }
  return out;
}

Result<FigureValues> read_round(const json& value, const std::string& path) {
  if (!value.is_object())
    return fail(ErrorCode::corrupt_file, fmt::format("'{}' is not an object", path));
  FigureValues figures;
  for (const auto& [name, figure] : value.items()) {
    OCTAVO_TRY(figures[name], read_value<double>(figure, fmt::format("{}.{}", path, name)));
  }
  return figures;
}

// What a run may have besides.
Result<void> read_place(JsonFields& fields, RunResult& run) {
  if (fields.find("x")) {
    OCTAVO_TRY(run.x, fields.number("x"));
  }
  if (fields.find("series")) {
    OCTAVO_TRY(run.series, fields.text("series"));
  }
  if (fields.find("group")) {
    OCTAVO_TRY(run.group, fields.text("group"));
  }
  if (fields.find("long_request")) {
    OCTAVO_TRY(run.long_request, fields.integer("long_request"));
    if (std::cmp_greater_equal(*run.long_request, run.requests.size()))
      return fields.error("long_request", "is no request of the run");
  }
  if (!fields.find("rounds")) return {};
  OCTAVO_TRY(run.rounds, read_list<FigureValues>(fields, "rounds", read_round));
  return {};
}

Result<RunResult> read_run(const json& value, const std::string& path) {
  JsonFields fields(value, path + ".");
  RunResult run;
  OCTAVO_TRY(run.name, fields.text("name"));
  OCTAVO_TRY(run.settings, read_settings(fields));
  OCTAVO_TRY(run.block_size, fields.integer("block_size"));
  OCTAVO_TRY(run.num_blocks, fields.integer("num_blocks"));
  OCTAVO_TRY(run.requests, read_list<RequestRecord>(fields, "requests", read_request));
  OCTAVO_TRY(run.steps, read_steps(fields));
  const auto read_row = [&](const json& row, const std::string& place) {
    return read_block_row(row, place, run.num_blocks);
  };
  OCTAVO_TRY(run.block_map, read_list<BlockMapRow>(fields, "block_map", read_row));
  OCTAVO_TRY(run.server, read_server(fields));
  OCTAVO_TRY(run.goodput_ms, read_goodput(fields));
  OCTAVO_CHECK_OK(read_place(fields, run));
  fields.find("figures");
  fields.find("failures");
  OCTAVO_CHECK_OK(fields.finish());
  return run;
}

Result<void> check_schema(JsonFields& fields) {
  OCTAVO_TRY(const std::string schema, fields.text("schema"));
  if (schema == kSchema) return {};
  return fail(ErrorCode::unsupported,
              fmt::format("has the schema {}; known is '{}'", quote(schema), kSchema));
}

Result<BenchResult> read_root(const json& root) {
  JsonFields fields(root, "");
  OCTAVO_CHECK_OK(check_schema(fields));
  BenchResult result;
  OCTAVO_TRY(result.title, fields.text("title"));
  OCTAVO_TRY(result.model, fields.text("model"));
  OCTAVO_TRY(result.machine, fields.text("machine"));
  OCTAVO_TRY(result.command, fields.text("command"));
  OCTAVO_TRY(result.settings, read_settings(fields));
  OCTAVO_TRY(result.notes, read_list<std::string>(fields, "notes", read_value<std::string>));
  if (fields.find("cost_per_hour")) {
    OCTAVO_TRY(result.cost_per_hour, fields.number("cost_per_hour"));
  }
  if (fields.find("x_label")) {
    OCTAVO_TRY(result.x_label, fields.text("x_label"));
  }
  if (fields.find("headline")) {
    OCTAVO_TRY(result.headline,
               read_list<std::string>(fields, "headline", read_value<std::string>));
  }
  fields.find("answer");
  OCTAVO_TRY(result.runs, read_list<RunResult>(fields, "runs", read_run));
  OCTAVO_CHECK_OK(fields.finish());
  return result;
}

}  // namespace

OrderedJson figures_json(const RunResult& run, std::optional<double> cost_per_hour) {
  OrderedJson out = OrderedJson::object();
  for (const Figure& figure : list_figures(figures_of(run, cost_per_hour)))
    out[figure.name] = figure.value ? OrderedJson(*figure.value) : OrderedJson(nullptr);
  return out;
}

OrderedJson to_json(const BenchResult& result) {
  OrderedJson runs = OrderedJson::array();
  for (const RunResult& run : result.runs) runs.push_back(run_json(run, result.cost_per_hour));
  OrderedJson out = {{"schema", kSchema},
                     {"title", result.title},
                     {"answer", answers(result)},
                     {"model", result.model},
                     {"machine", result.machine},
                     {"command", result.command},
                     {"settings", result.settings},
                     {"notes", result.notes},
                     {"cost_per_hour", result.cost_per_hour ? OrderedJson(*result.cost_per_hour)
                                                            : OrderedJson(nullptr)}};
  if (!result.x_label.empty()) out["x_label"] = result.x_label;
  if (!result.headline.empty()) out["headline"] = result.headline;
  out["runs"] = std::move(runs);
  return out;
}

Result<BenchResult> parse_result(std::string_view text, const std::string& name) {
  const auto [root, too_deep] = parse_shallow_json(text, kMaxDepth);
  if (too_deep || !root.is_object())
    return fail(ErrorCode::corrupt_file, fmt::format("{}: is not a JSON object", name));
  auto result = read_root(root);
  if (!result)
    return fail(result.error().code, fmt::format("{}: {}", name, result.error().message));
  return result;
}

Result<BenchResult> read_result(const std::string& path) {
  OCTAVO_TRY(const FileMap map, FileMap::open(path));
  if (map.size() > kMaxBytes)
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{}: has {} bytes, over the limit of {}", path, map.size(), kMaxBytes));
  return parse_result({reinterpret_cast<const char*>(map.bytes().data()), map.size()}, path);
}

}  // namespace octavo
