#include <fmt/format.h>

#include <map>

#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/line_scanner.h"
#include "cli/model_loading.h"
#include "cli/sampling_options.h"
#include "cli/stop_signals.h"
#include "llm/run.h"
#include "server/api_embeddings.h"
#include "text/tokenizer.h"

namespace octavo::cli {
namespace {

// Lines that wait for the result of an earlier one, at most.
constexpr size_t kWindow = 4096;

// Each line of a file is a text, and gets a line.
class EmbedRun {
 public:
  EmbedRun(LineScanner input, const LoadedEngine& engine, PoolingParams pooling, Terminal& terminal,
           std::stop_token stop)
      : input_(std::move(input)),
        engine_(engine),
        pooling_(pooling),
        terminal_(terminal),
        stop_(std::move(stop)) {}

  Result<void> run(int places) {
    Run run(*engine_.engine, std::make_shared<std::counting_semaphore<>>(places),
            [this] { return next_item(); },
            {.wants_deltas = false, .window = kWindow, .cancel = stop_});
    while (auto event = run.next()) {
      ready_.emplace(event->prompt_index, std::move(*event->output));
      if (stop_.stop_requested()) continue;
      for (; !ready_.empty() && ready_.begin()->first == num_written_; ++num_written_)
        write(ready_.extract(ready_.begin()).mapped());
      if (!terminal_.can_write()) break;
    }
    OCTAVO_CHECK_OK(input_status_);
    return first_error_;
  }

 private:
  std::optional<RunItem> next_item() {
    auto line = input_.next(stop_);
    if (!line) input_status_ = tl::make_unexpected(line.error());
    if (!line || !*line) return std::nullopt;
    return RunItem{.request = request_of(**line)};
  }

  Result<Request> request_of(const ScannedLine& line) const {
    if (line.too_long)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("the line is longer than {} bytes", kMaxTextBytes));
    std::string_view text = line.text;
    if (text.ends_with('\r')) text.remove_suffix(1);
    OCTAVO_TRY(std::vector<TokenId> ids, engine_.tokenizer->encode(text, {.add_special = true}));
    return Request{.prompt_token_ids = std::move(ids), .pooling = pooling_};
  }

  void write(const RequestOutput& output) {
    if (!output.error)
      return terminal_.write(fmt::format(R"({{"index":{},"prompt_tokens":{},"embedding":{}}})"
                                         "\n",
                                         num_written_, output.prompt_token_ids.size(),
                                         floats_json(output.embedding)));
    const Error& error = *output.error;
    terminal_.write(
        dump_line({{"index", num_written_},
                   {"error", {{"code", error_name(error.code)}, {"message", error.message}}}}));
    if (first_error_)
      first_error_ = fail(error.code, fmt::format("line {}: {}", num_written_ + 1, error.message));
  }

  LineScanner input_;
  const LoadedEngine& engine_;
  PoolingParams pooling_;
  Terminal& terminal_;
  std::stop_token stop_;
  Result<void> input_status_;
  Result<void> first_error_;
  std::map<size_t, RequestOutput> ready_;
  size_t num_written_ = 0;
};

Result<PoolingParams> pooling_params(const OptionValues& options, const LoadedEngine& engine) {
  PoolingParams params{.type = engine.pooling.type, .normalize = engine.pooling.normalize};
  if (options.is_given("normalize")) params.normalize = options.flag("normalize");
  params.dimensions = options.integer("dimensions");
  const int all = engine.pooling.size;
  if (params.dimensions == 0 || params.dimensions == all || engine.pooling.matryoshka)
    return params;
  return fail(ErrorCode::invalid_argument,
              fmt::format("--dimensions is {}, and the model is not said to have been trained for "
                          "fewer than {}; --matryoshka allows it",
                          params.dimensions, all));
}

}  // namespace

Result<void> run_embed(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  EngineOptions engine_options = read_engine_options(options);
  engine_options.model = invocation.positionals[0];
  OCTAVO_TRY(LineScanner input, LineScanner::open(options.text("input"), kMaxTextBytes));
  const StopSignals signals({SIGINT});
  OCTAVO_TRY(const LoadedEngine engine, load_with_progress(engine_options, terminal));
  OCTAVO_TRY(const PoolingParams pooling, pooling_params(options, engine));
  EmbedRun run(std::move(input), engine, pooling, terminal, signals.first());
  return run.run(engine_options.max_queue_len);
}

}  // namespace octavo::cli
