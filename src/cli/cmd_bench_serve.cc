#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>

#include "base/file_map.h"
#include "base/rng.h"
#include "bench/arrivals.h"
#include "bench/goodput.h"
#include "bench/number_text.h"
#include "bench/serve_sweep.h"
#include "cli/bench_output.h"
#include "cli/commands.h"
#include "cli/stop_signals.h"
#include "formats/quote.h"
#include "formats/shallow_json.h"

namespace octavo::cli {
namespace {

constexpr std::string_view kDefaultUrl = "http://127.0.0.1:8000";
constexpr int64_t kOtherFiles = 64;  // open files beside those of the connections

tl::unexpected<Error> bad_flag(std::string_view name, const std::string& why) {
  return fail(ErrorCode::invalid_argument, fmt::format("{}: {}", flag_of(name), why));
}

// Errors of `parse` get the name of the flag.
template <class Parse>
auto parsed(const OptionValues& options, std::string_view name, Parse parse)
    -> decltype(parse(std::string())) {
  auto value = parse(options.text(name));
  if (!value) return bad_flag(name, value.error().message);
  return value;
}

Result<std::optional<Lengths>> read_lengths(const OptionValues& options, std::string_view name) {
  if (!options.is_given(name)) return std::optional<Lengths>();
  OCTAVO_TRY(Lengths lengths, Lengths::parse(flag_of(name), options.text(name)));
  return std::optional(std::move(lengths));
}

Result<TokenRange> parse_range(const std::string& text) {
  const size_t dash = std::min(text.find('-'), text.size());
  const auto low = number_between(std::string_view(text).substr(0, dash), 0, INT32_MAX);
  const auto high =
      number_between(std::string_view(text).substr(std::min(dash + 1, text.size())), 0, INT32_MAX);
  if (low && high && *low <= *high) return TokenRange{*low, *high};
  return fail(ErrorCode::invalid_argument, fmt::format("{} is not LOW-HIGH", quote(text)));
}

bool reads_file(DataSet data_set) {
  return data_set == DataSet::jsonl || data_set == DataSet::trace;
}

// What would be ignored is refused.
Result<void> check_data_set(const OptionValues& options, DataSet data_set) {
  const bool from_file = reads_file(data_set);
  if (from_file != options.is_given("dataset_path"))
    return bad_flag("dataset_path", from_file ? "is needed for a data set from a file"
                                              : "needs --dataset jsonl or trace");
  for (const std::string_view name : {"input_len", "prefix_len", "prefix_groups"})
    if (from_file && options.is_given(name))
      return bad_flag(name, "has no meaning for a data set from a file");
  if (data_set == DataSet::trace && options.is_given("output_len"))
    return bad_flag("output_len", "has no meaning for a trace, which says it itself");
  if (data_set != DataSet::multi_turn && options.is_given("turns"))
    return bad_flag("turns", "needs --dataset multi-turn");
  if (data_set == DataSet::multi_turn && options.text("prompt_format") == "token-ids")
    return bad_flag("prompt_format", "conversations are text; use words");
  return {};
}

Result<DialogueSpec> read_spec(const OptionValues& options) {
  DialogueSpec spec;
  spec.data_set = *find_data_set(options.text("dataset"));
  OCTAVO_CHECK_OK(check_data_set(options, spec.data_set));
  spec.num_prompts = options.integer("num_prompts");
  OCTAVO_TRY(spec.input, read_lengths(options, "input_len"));
  OCTAVO_TRY(spec.output, read_lengths(options, "output_len"));
  if (const auto prefix = options.find<int64_t>("prefix_len"))
    spec.prefix_tokens = static_cast<int>(*prefix);
  spec.prefix_groups = options.integer("prefix_groups");
  spec.turns = options.integer("turns");
  if (options.is_given("token_id_range")) {
    OCTAVO_TRY(spec.tokens, parsed(options, "token_id_range", parse_range));
  }
  spec.seed = options.find<uint64_t>("seed").value_or(fresh_seed());
  return spec;
}

Result<std::vector<Dialogue>> read_dialogues(const OptionValues& options,
                                             const DialogueSpec& spec) {
  const std::string path = options.text("dataset_path");
  if (spec.data_set == DataSet::trace) {
    OCTAVO_TRY(const Trace trace, read_trace(path));
    return make_dialogues(trace, spec);
  }
  if (spec.data_set != DataSet::jsonl) return make_dialogues(spec);
  OCTAVO_TRY(const FileMap map, FileMap::open(path));
  return parse_dialogues({reinterpret_cast<const char*>(map.bytes().data()), map.size()}, path,
                         spec);
}

Result<std::optional<double>> parse_rate(const std::string& text) {
  if (text == "inf") return std::optional<double>();
  const auto rate = number_between(std::string_view(text), 1e-6, 1e9);
  if (rate) return rate;
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("{} is neither inf nor a number from 0.000001 to 1000000000", quote(text)));
}

// Times of their own, unless a trace has some and no others are asked for.
Result<void> set_arrivals(const OptionValues& options, const DialogueSpec& spec,
                          std::vector<Dialogue>& dialogues) {
  Arrivals arrivals = {.burstiness = options.get<double>("burstiness"), .seed = spec.seed};
  const bool has_rate = options.is_given("request_rate"), has_ramp = options.is_given("ramp_up");
  if (has_rate && has_ramp) return bad_flag("ramp_up", "and --request-rate exclude each other");
  if (has_rate) {
    OCTAVO_TRY(arrivals.rate, parsed(options, "request_rate", parse_rate));
  }
  if (has_ramp) {
    OCTAVO_TRY(arrivals.ramp_up, parsed(options, "ramp_up", parse_ramp_up));
  }
  if (options.is_given("burstiness") && !arrivals.rate && !has_ramp)
    return bad_flag("burstiness", "needs --request-rate or --ramp-up");
  if (spec.data_set == DataSet::trace && !has_rate && !has_ramp) return {};
  const std::vector<double> times = arrival_times(arrivals, static_cast<int>(dialogues.size()));
  for (size_t i = 0; i < dialogues.size(); ++i) dialogues[i].arrival_s = times[i];
  return {};
}

Result<nlohmann::json> parse_extra(const std::string& text) {
  const auto [root, too_deep] = parse_shallow_json(text.empty() ? "{}" : text, 32);
  if (!too_deep && root.is_object()) return root;
  return fail(ErrorCode::invalid_argument, fmt::format("{} is not a JSON object", quote(text)));
}

Result<std::string> read_key(const OptionValues& options) {
  const char* variable = std::getenv("OPENAI_API_KEY");
  const std::string key =
      options.is_given("api_key") ? options.text("api_key") : std::string(variable ? variable : "");
  const bool is_plain =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127; });
  if (!is_plain) return bad_flag("api_key", "a key has no spaces and none but ASCII letters");
  return key;
}

Result<RequestOptions> read_request(const OptionValues& options, DataSet data_set) {
  RequestOptions request;
  request.model = options.text("model");
  request.chat = options.text("endpoint") == kChatCompletions;
  request.token_ids = options.text("prompt_format") == "token-ids";
  if (request.chat && request.token_ids)
    return bad_flag("prompt_format", "token-ids need --endpoint /v1/completions");
  const bool may_ignore = data_set != DataSet::jsonl || options.is_given("ignore_eos");
  request.ignore_eos = may_ignore && options.flag("ignore_eos");
  request.temperature = options.get<double>("temperature");
  OCTAVO_TRY(request.extra_body, parsed(options, "extra_body", parse_extra));
  return request;
}

// As many as the system allows.
int64_t raise_open_files() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT32_MAX));
}

Result<void> check_open_files(const std::vector<int>& levels,
                              const std::vector<Dialogue>& dialogues) {
  const int64_t most = raise_open_files() - kOtherFiles;
  const bool all_at_once = dialogues.back().arrival_s == 0;
  const bool is_bounded = std::ranges::find(levels, 0) == levels.end();
  const int64_t needed = is_bounded
                             ? std::min<int64_t>(std::ranges::max(levels), std::ssize(dialogues))
                         : all_at_once ? std::ssize(dialogues)
                                       : 0;
  if (needed <= most) return {};
  return fail(ErrorCode::resource_exhausted,
              fmt::format("{} requests at once need as many open files, and this process may have "
                          "{}; lower --max-concurrency, or raise the limit with ulimit -n",
                          needed, most + kOtherFiles));
}

std::string goodput_text(const OptionValues& options) {
  return fmt::format("{}", fmt::join(options.all<std::string>("goodput"), " "));
}

void describe(BenchResult& result, const OptionValues& options, const DialogueSpec& spec,
              const std::string& url) {
  const std::string label = options.is_given("label") ? options.text("label") : url;
  const bool sweeps = result.runs.size() > 1;
  result.title = sweeps ? "Load on a server by requests at once: " + label : "Load on a server";
  result.headline = {"output_throughput", "p95_ttft_ms", "p95_tpot_ms"};
  for (RunResult& run : result.runs) {
    if (!sweeps) run.name = label;
    run.settings["server"] = url;
    run.settings["endpoint"] = options.text("endpoint");
    run.settings["dataset"] = options.text("dataset");
    run.settings["seed"] = fmt::format("{}", spec.seed);
    run.settings["request_rate"] = options.is_given("request_rate")  ? options.text("request_rate")
                                   : options.is_given("ramp_up")     ? options.text("ramp_up")
                                   : spec.data_set == DataSet::trace ? "of the trace"
                                                                     : "inf";
    if (options.is_given("goodput")) run.settings["goodput"] = goodput_text(options);
  }
}

// Loads of made-up requests are all of other seeds; what a file has is sent again.
void note_repeated(const ServeSweepOptions& sweep, DataSet data_set, BenchResult& result) {
  if (sweep.levels.size() * static_cast<size_t>(sweep.rounds) > 1 && reads_file(data_set))
    result.notes.push_back(
        "The same prompts were sent for each level and round: a server with a prefix cache finds "
        "them from the second time on.");
}

Result<ServeSweepOptions> read_sweep(const OptionValues& options, const DialogueSpec& spec) {
  ServeSweepOptions sweep;
  const auto levels = options.get<std::vector<int64_t>>("max_concurrency");
  sweep.levels.assign(levels.begin(), levels.end());
  sweep.rounds = options.integer("repeat");
  sweep.dialogues = [&options, spec](int load) -> Result<std::vector<Dialogue>> {
    DialogueSpec next = spec;
    next.seed += static_cast<uint64_t>(load);
    OCTAVO_TRY(std::vector<Dialogue> dialogues, read_dialogues(options, next));
    OCTAVO_CHECK_OK(set_arrivals(options, next, dialogues));
    return dialogues;
  };
  // What is wrong with them is said before anything is sent.
  OCTAVO_TRY(const std::vector<Dialogue> first, sweep.dialogues(0));
  OCTAVO_CHECK_OK(check_open_files(sweep.levels, first));
  return sweep;
}

Result<http::ClientOptions> read_client(const OptionValues& options, const std::string& url) {
  auto address = http::parse_address(url);
  if (!address)
    return fail(address.error().code, fmt::format("{} {}", quote(url), address.error().message));
  // Clients of OpenAI's API are given the address so; the paths of requests bring it themselves.
  constexpr std::string_view kVersion = "/v1";
  if (address->path.ends_with(kVersion))
    address->path.resize(address->path.size() - kVersion.size());
  return http::ClientOptions{.address = *address,
                             .verify_certificate = options.flag("verify_tls"),
                             .keep_alive = options.flag("keep_alive")};
}

Result<ServeLoadOptions> read_load(const OptionValues& options, const std::string& url,
                                   DataSet data_set) {
  ServeLoadOptions load;
  OCTAVO_TRY(load.client, read_client(options, url));
  OCTAVO_TRY(load.request, read_request(options, data_set));
  OCTAVO_TRY(load.api_key, read_key(options));
  OCTAVO_TRY(load.goodput_ms, parse_goodput(goodput_text(options)));
  load.timeout_s = options.get<double>("request_timeout_s");
  load.num_warmups = options.integer("num_warmups");
  load.sample_server = options.flag("server_metrics");
  return load;
}

void show_progress(Terminal& terminal, int done, int failed, int total) {
  terminal.long_progress(fmt::format("octavo: {} of {} requests answered{}", done - failed, total,
                                     failed > 0 ? fmt::format(", {} failed", failed) : ""));
}

// What there is has been shown, and kept; whether it is what was asked for, the exit code says.
Result<void> verdict(const ServeLoadResult& result, Terminal& terminal) {
  if (result.was_stopped)
    return fail(ErrorCode::cancelled, "stopped before all requests were answered");
  if (result.failed == 0) return {};
  const std::string first = "; the first: " + result.first_failure;
  if (result.failed == result.requests)
    return fail(ErrorCode::io_error, fmt::format("no request was answered{}", first));
  terminal.say(fmt::format("octavo: note: {} of {} requests failed{}", result.failed,
                           result.requests, first));
  return {};
}

}  // namespace

Result<void> run_bench_serve(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  const std::string url =
      invocation.positionals.empty() ? std::string(kDefaultUrl) : invocation.positionals[0];
  OCTAVO_CHECK_OK(check_outputs(options));
  OCTAVO_TRY(const DialogueSpec spec, read_spec(options));
  OCTAVO_TRY(ServeLoadOptions load, read_load(options, url, spec.data_set));
  OCTAVO_TRY(ServeSweepOptions sweep, read_sweep(options, spec));
  const StopSignals interrupt;
  load.stop = interrupt.first();
  load.on_progress = [&terminal](int done, int failed, int total) {
    show_progress(terminal, done, failed, total);
  };
  sweep.load = std::move(load);
  OCTAVO_TRY(ServeLoadResult result, run_serve_sweep(sweep));
  describe(result.bench, options, spec, url);
  note_repeated(sweep, spec.data_set, result.bench);
  OCTAVO_CHECK_OK(show_result(std::move(result.bench), invocation, terminal));
  return verdict(result, terminal);
}

}  // namespace octavo::cli
