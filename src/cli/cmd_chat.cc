#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/chat_commands.h"
#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/given_template.h"
#include "cli/input.h"
#include "cli/line_editor.h"
#include "cli/message_reader.h"
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
    while (!is_over_) {
      auto message = next_message();
      if (message && !*message) break;
      auto done = message ? take(**message) : tl::make_unexpected(message.error());
      if (!terminal_.can_write()) break;
      if (!done && !is_interactive()) return done;
      if (!done) say_error(done.error());
    }
    if (is_interactive() && !is_over_) terminal_.write("\n");
    return {};
  }

 private:
  bool is_interactive() const {
    return terminal_.input_is_terminal() && terminal_.output_is_terminal();
  }

  Result<std::optional<std::string>> next_message() {
    if (is_interactive() && terminal_.understands_escapes() && !editor_) editor_.emplace();
    OCTAVO_TRY(auto message, read_message([this](std::string_view prompt) { return line(prompt); },
                                          kMaxTextBytes));
    if (message && !message->empty() && editor_) editor_->remember(*message);
    return message;
  }

  Result<std::optional<std::string>> line(std::string_view prompt) {
    if (!editor_) {
      if (is_interactive()) terminal_.write(prompt);
      return read_line(kMaxTextBytes);
    }
    terminal_.clear_progress();
    return editor_->read(prompt);
  }

  Result<void> take(const std::string& message) {
    if (message.empty()) return {};
    OCTAVO_TRY(const std::optional<ChatCommandLine> command, parse_chat_command(message));
    return command ? carry_out(*command) : answer(message);
  }

  Result<void> carry_out(const ChatCommandLine& line) {
    switch (line.command) {
      case ChatCommand::help:
        for (const std::string& help : chat_help()) terminal_.say(help);
        break;
      case ChatCommand::clear:
        conversation_.clear();
        break;
      case ChatCommand::retry:
        return retry();
      case ChatCommand::system:
        set_system(line.argument);
        break;
      case ChatCommand::exit:
        is_over_ = true;
    }
    return {};
  }

  void set_system(const std::string& text) {
    if (!text.empty()) return conversation_.set_system(text);
    const std::string present = conversation_.system();
    terminal_.say(present.empty() ? "there is no system message; /system TEXT sets one" : present);
  }

  Result<void> retry() {
    const Conversation before = conversation_;
    const std::optional<std::string> question = conversation_.take_last_question();
    if (!question)
      return fail(ErrorCode::invalid_argument, "there is no message yet to answer once more");
    auto done = answer(*question);
    if (!done) conversation_ = before;
    return done;
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
  std::optional<LineEditor> editor_;  // of a person at a terminal
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
  terminal.remark("/help lists the commands; Ctrl-C stops an answer, Ctrl-D or /exit ends.");
  return Chat(engine, std::move(params), options.text("system"), terminal).run();
}

}  // namespace octavo::cli
