// `octavo serve` with a model without weights: what comes next is a function of what came before,
// and a step takes as long as it is told. For tests of the server itself.
//
//   stub_server [--echo] [--faults] [--fill-in-middle] [--hang-ms N] [--load-delay-ms N]
//   [--prefill-delay-ms N]
//   [--step-delay-ms N]
//   [--num-blocks N] [flags of serve]
//
// --echo: the answer repeats the prompt, of a conversation its last message, and ends.
// --faults: the model throws once an answer holds \x06 (in the forward) or \x07 (in the logits),
// and does not return for --hang-ms once it holds \x15.
// --fill-in-middle: the tokenizer has tokens to say that text is missing.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/serve_command.h"
#include "engine/load_drafters.h"
#include "support/stub_model.h"
#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

struct StubOptions {
  bool echo = false, faults = false, fill_in_middle = false;
  int load_delay_ms = 0, prefill_delay_ms = 0, step_delay_ms = 0, num_blocks = 4096;
  int hang_ms = 3'600'000;
};

constexpr int kContext = 4096;
constexpr TokenId kForwardThrows{6}, kLogitsThrow{7}, kHangs{21};

// A prompt ends with <eos>, which the tokenizer adds; messages begin with <bos>.
constexpr std::string_view kTemplate =
    "{% for message in messages %}{{ bos_token }}{{ message['content'] }}{% endfor %}"
    "{{ eos_token }}";

class SlowStub : public testing::StubModel {
 public:
  static constexpr int kLogitsRows = 2 * kMaxDraftTokens;

  SlowStub(const StubOptions& options, int vocab_size, int context, int batched, Logits fill)
      : StubModel(vocab_size, context, options.num_blocks, std::move(fill), batched, kLogitsRows),
        options_(options) {}

  bool forward(const ForwardBatch& batch) override {
    bool reads_prompt = false;
    for (const BatchSequence& sequence : batch.sequences) reads_prompt |= sequence.num_tokens > 1;
    const int ms =
        reads_prompt ? options_.prefill_delay_ms + options_.step_delay_ms : options_.step_delay_ms;
    sleep_ms(ms);
    if (options_.faults) misbehave(batch);
    return StubModel::forward(batch);
  }

 private:
  static void sleep_ms(int ms) {
    if (ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  }
  // A single token is one that the model said itself.
  void misbehave(const ForwardBatch& batch) const {
    for (const BatchSequence& sequence : batch.sequences) {
      if (sequence.num_tokens != 1) continue;
      const TokenId token = batch.tokens[static_cast<size_t>(sequence.first_row)];
      if (token == kForwardThrows) throw std::runtime_error("the stub was asked to throw");
      if (token == kHangs) sleep_ms(options_.hang_ms);
    }
  }

  StubOptions options_;
};

// The prompt again from its start, or from its last message; after it the end.
void echo_logits(const std::vector<TokenId>& history, TokenId bos, TokenId eos,
                 std::span<float> row) {
  const auto end = std::find(history.begin(), history.end(), eos);
  auto begin = history.begin();
  for (auto at = history.begin(); at != end; ++at)
    if (*at == bos) begin = at + 1;
  const auto done = end == history.end() ? 0 : history.end() - end - 1;
  const TokenId next = done < end - begin ? *(begin + done) : eos;
  row[static_cast<size_t>(raw(next))] = 20;
}

Result<void> load_slowly(const EngineOptions& options, int ms) {
  constexpr int kPart = 10;
  for (int done = 0; done < ms; done += kPart) {
    if (options.stop_loading.stop_requested())
      return fail(ErrorCode::cancelled, "loading was stopped");
    options.on_progress(done / static_cast<double>(ms));
    std::this_thread::sleep_for(std::chrono::milliseconds(kPart));
  }
  return {};
}

struct Models {
  std::unique_ptr<SlowStub> model;
  std::unique_ptr<testing::StubModel> draft;
};

// Of the same mind as the model, but for every fifth history, of which it knows nothing.
std::unique_ptr<testing::StubModel> make_draft_model(int vocab_size,
                                                     const testing::StubModel::Logits& fill) {
  constexpr int kBlocks = 1024, kBatched = 256;
  const auto fill_some = [fill](const auto& history, std::span<float> row) {
    if (history.size() % 5 != 0) fill(history, row);
  };
  return std::make_unique<testing::StubModel>(vocab_size, kContext, kBlocks, fill_some, kBatched,
                                              SlowStub::kLogitsRows);
}

void add_fill_in_middle(TokenizerSpec& spec) {
  for (const char* spelling : {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"})
    testing::add_token(spec, spelling, TokenType::control);
  spec.scores.clear();
}

Result<LoadedEngine> make_engine(const EngineOptions& options, const StubOptions& stub,
                                 Models& models) {
  OCTAVO_CHECK_OK(load_slowly(options, stub.load_delay_ms));
  TokenizerSpec spec = testing::tiny_byte_spec();
  spec.add_eos = true;
  if (stub.fill_in_middle) add_fill_in_middle(spec);
  spec.chat_template = kTemplate;
  LoadedEngine engine;
  engine.pooling = {.type = PoolingType::mean, .size = 8};  // StubModel's
  OCTAVO_TRY(Tokenizer tokenizer, Tokenizer::create(std::move(spec)));
  engine.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  OCTAVO_TRY(engine.chat_template, ChatTemplate::parse(kTemplate));
  const TokenId bos = *engine.tokenizer->bos(), eos = *engine.tokenizer->eos();
  const auto fill = [stub, bos, eos](const auto& history, std::span<float> row) {
    if (stub.faults && history.back() == kLogitsThrow)
      throw std::runtime_error("the stub was asked to throw");
    if (stub.echo)
      echo_logits(history, bos, eos, row);
    else
      testing::hash_logits(history, row);
  };
  const auto vocab_size = static_cast<int>(engine.tokenizer->vocab_size());
  engine.config.vocab_size = vocab_size;
  models.model =
      std::make_unique<SlowStub>(stub, vocab_size, kContext, options.max_num_batched_tokens, fill);
  EngineCoreOptions core;
  OCTAVO_TRY(const SpeculativeConfig config, parse_speculative_config(options.speculative_config));
  if (config.uses(DraftMethod::draft_model)) models.draft = make_draft_model(vocab_size, fill);
  OCTAVO_TRY(core.speculator,
             make_speculator(config,
                             {.model = *models.model,
                              .draft_model = models.draft.get(),
                              .early_exit = {.skipped_layers = {1}, .confidence_threshold = 0},
                              .enable_prefix_caching = options.enable_prefix_caching},
                             vocab_size));
  core.scheduler = scheduler_options(options);
  if (core.scheduler.max_model_len == 0)
    core.scheduler.max_model_len = std::min(kContext, stub.num_blocks * 16);
  core.on_step = options.on_step;
  core.on_idle = options.on_idle;
  core.max_logprobs = options.max_logprobs;
  engine.config.context_length = kContext;
  engine.max_model_len = core.scheduler.max_model_len;
  engine.bytes_per_block = 1024;
  if (models.draft) engine.draft_bytes_per_block = 512;
  engine.isa = "stub";
  OCTAVO_TRY(engine.engine, Engine::create(*models.model, *engine.tokenizer, std::move(core),
                                           options.max_queue_len));
  return engine;
}

// Takes the stub's own flags out of the arguments.
std::vector<std::string> split(int argc, char** argv, StubOptions& stub) {
  std::vector<std::string> rest = {"serve", "stub", "--block-size", "16"};
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::atoi(argv[++i]) : 0; };
    if (flag == "--echo")
      stub.echo = true;
    else if (flag == "--faults")
      stub.faults = true;
    else if (flag == "--fill-in-middle")
      stub.fill_in_middle = true;
    else if (flag == "--hang-ms")
      stub.hang_ms = number();
    else if (flag == "--load-delay-ms")
      stub.load_delay_ms = number();
    else if (flag == "--prefill-delay-ms")
      stub.prefill_delay_ms = number();
    else if (flag == "--step-delay-ms")
      stub.step_delay_ms = number();
    else if (flag == "--num-blocks")
      stub.num_blocks = number();
    else
      rest.push_back(flag);
  }
  return rest;
}

int run(int argc, char** argv) {
  StubOptions stub;
  const std::vector<std::string> arguments = split(argc, argv, stub);
  cli::Terminal terminal;
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
  Models models;  // outlive the engine
  const auto line = cli::parse_command_line(arguments, environment);
  const auto served = line.and_then([&](const cli::CommandLine& parsed) -> Result<void> {
    const auto* invocation = std::get_if<cli::Invocation>(&parsed);
    if (!invocation) return fail(ErrorCode::invalid_argument, "see octavo serve --help");
    return cli::serve_model(*invocation, "stub", terminal, [&](const EngineOptions& options) {
      return make_engine(options, stub, models);
    });
  });
  if (served) return 0;
  std::cerr << "stub_server: " << served.error().message << "\n";
  return exit_code(served.error().code);
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) { return octavo::run(argc, argv); }
