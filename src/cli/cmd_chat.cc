#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/given_template.h"
#include "cli/input.h"
#include "cli/model_loading.h"
#include "cli/sampling_options.h"
#include "cli/stop_signals.h"
#include "engine/catalog.h"
#include "llm/chat_prompt.h"

namespace octavo::cli {
namespace {

constexpr int kAnswerRoom = 512;  // tokens kept free for an answer whose length is not limited

class Chat {
 public:
  Chat(const LoadedEngine& engine, SamplingParams params, const std::string& system,
       Terminal& terminal)
      : engine_(engine), params_(std::move(params)), conversation_(system), terminal_(terminal) {}

  // Until the end of input. On a terminal an error ends a turn, in a pipe the program.
  Result<void> run() {
    for (;;) {
      if (is_interactive()) terminal_.write("> ");
      auto line = read_line(kMaxTextBytes);
      if (line && !*line) break;
      auto done = line ? take_line(**line) : tl::make_unexpected(line.error());
      if (!terminal_.can_write()) break;
      if (!done && !is_interactive()) return done;
      if (!done) say_error(done.error());
      if (is_over_) return {};
    }
    if (is_interactive()) terminal_.write("\n");
    return {};
  }

 private:
  bool is_interactive() const {
    return terminal_.input_is_terminal() && terminal_.output_is_terminal();
  }

  Result<void> take_line(const std::string& line) {
    if (line.empty()) return {};
    if (line == "/exit") {
      is_over_ = true;
      return {};
    }
    if (line == "/clear") {
      conversation_.clear();
      return {};
    }
    if (is_command(line))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("there is no {}; there are /clear and /exit", line));
    return answer(line);
  }

  // A slash and a word of small letters; anything else that begins with a slash is a message.
  static bool is_command(std::string_view line) {
    return line.size() > 1 && line.front() == '/' &&
           std::all_of(line.begin() + 1, line.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  }

  Result<void> answer(const std::string& message) {
    conversation_.add("user", message);
    auto output =
        make_room().and_then([&](std::vector<TokenId> ids) { return generate(std::move(ids)); });
    if (!output) {
      conversation_.drop_last();
      return tl::make_unexpected(output.error());
    }
    const CompletionOutput& choice = output->outputs.front();
    conversation_.add("assistant", choice.text);
    terminal_.write(choice.text.ends_with('\n') ? "" : "\n");
    if (choice.finish_reason == FinishReason::abort) terminal_.remark("[stopped]");
    if (choice.finish_reason == FinishReason::length && !params_.max_tokens)
      terminal_.say("octavo: note: the context is full; the answer ends here");
    return {};
  }

  // The prompt, after dropping as many of the oldest turns as an answer needs room.
  Result<std::vector<TokenId>> make_room() {
    int dropped = 0;
    for (;; ++dropped) {
      OCTAVO_TRY(ChatPrompt prompt, render_chat(engine_, conversation_.messages()));
      const auto context = static_cast<size_t>(engine_.max_model_len);
      if (prompt.ids.size() + answer_room() <= context) {
        if (dropped > 0)
          terminal_.say(
              fmt::format("octavo: note: the context is full; the oldest {} dropped",
                          dropped == 1 ? "turn was" : fmt::format("{} turns were", dropped)));
        return std::move(prompt.ids);
      }
      if (!conversation_.drop_oldest_turn())
        return fail(ErrorCode::context_overflow,
                    fmt::format("the message makes a prompt of {} tokens, and with {} for an "
                                "answer the context of {} does "
                                "not hold it; shorten it",
                                prompt.ids.size(), answer_room(), context));
    }
  }

  size_t answer_room() const {
    if (params_.max_tokens) return static_cast<size_t>(*params_.max_tokens);
    return static_cast<size_t>(std::min(kAnswerRoom, engine_.max_model_len / 4));
  }

  Result<RequestOutput> generate(std::vector<TokenId> ids) {
    StopSignals interrupt;
    RequestEvents events;
    events.on_delta = [&](const ChoiceDelta& delta) {
      terminal_.write(delta.text);
      if (!terminal_.can_write()) interrupt.request_stop();
    };
    events.on_prefill = prefill_progress(terminal_);
    return engine_.engine->run({std::move(ids), params_, 0, {}}, std::move(events),
                               interrupt.first());
  }

  void say_error(const Error& error) {
    terminal_.say(fmt::format("octavo: error: {} [{}]", error.message, error_name(error.code)));
  }

  const LoadedEngine& engine_;
  SamplingParams params_;
  Conversation conversation_;
  Terminal& terminal_;
  bool is_over_ = false;
};

}  // namespace

Result<void> run_chat(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  OCTAVO_TRY(SamplingParams params, read_sampling_params(options));
  EngineOptions engine_options = read_engine_options(options);
  engine_options.max_num_seqs = 1;
  OCTAVO_TRY(engine_options.model, find_model(invocation.positionals[0], terminal));
  use_model_defaults(params, options, find_in_catalog(engine_options.model));

  OCTAVO_TRY(const std::string chat_template, read_template(options.text("chat_template")));
  OCTAVO_TRY(LoadedEngine engine, load_generator(std::move(engine_options), terminal));
  OCTAVO_CHECK_OK(use_template(engine, chat_template));
  Conversation probe(options.text("system"));
  probe.add("user", "Hello");
  OCTAVO_CHECK_OK(render_chat(
      engine,
      probe.messages()));  // a model without a usable template is refused before anyone types
  terminal.remark("Ctrl-C stops an answer, /clear forgets the conversation, Ctrl-D or /exit ends.");
  return Chat(engine, std::move(params), options.text("system"), terminal).run();
}

}  // namespace octavo::cli
