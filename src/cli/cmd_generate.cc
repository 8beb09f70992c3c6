#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/given_template.h"
#include "cli/input.h"
#include "cli/json_output.h"
#include "cli/model_loading.h"
#include "cli/sampling_options.h"
#include "cli/stop_signals.h"
#include "engine/catalog.h"
#include "llm/chat_prompt.h"

namespace octavo::cli {
namespace {

struct Prompt {
  std::optional<std::string> text;  // nothing: given as token ids
  std::vector<TokenId> ids;
};

Result<void> check_flags(const OptionValues& options) {
  const auto refuse = [](std::string message) {
    return fail(ErrorCode::invalid_argument, std::move(message));
  };
  for (const std::string_view name : {"output", "overwrite", "served_model_name"})
    if (options.is_given(name)) return refuse(fmt::format("{} needs --input", flag_of(name)));
  const bool has_text = options.is_given("prompt");
  const bool has_ids = options.is_given("prompt_token_ids");
  if (has_text == has_ids)
    return refuse("give exactly one of --prompt and --prompt-token-ids, or --input");
  if (has_ids && options.flag("chat"))
    return refuse("--chat needs --prompt: a chat template renders text, not token ids");
  if (options.is_given("system") && !options.flag("chat")) return refuse("--system needs --chat");
  for (const std::string_view name : {"logprobs", "prompt_logprobs"})
    if (options.is_given(name) && !options.flag("json"))
      return refuse(fmt::format("{} needs --json, which prints them", flag_of(name)));
  return {};
}

// As the user gave it; the rest needs the model.
Result<Prompt> read_prompt(const OptionValues& options) {
  Prompt prompt;
  if (const auto ids = options.find<std::vector<int64_t>>("prompt_token_ids")) {
    for (const int64_t id : *ids) prompt.ids.push_back(TokenId{static_cast<int32_t>(id)});
    return prompt;
  }
  prompt.text = options.text("prompt");
  if (*prompt.text == "-") {
    OCTAVO_TRY(prompt.text, read_standard_input(kMaxTextBytes));
  }
  return prompt;
}

Result<void> encode_prompt(Prompt& prompt, const OptionValues& options, const LoadedEngine& engine,
                           Terminal& terminal) {
  if (!prompt.text) return {};
  if (!options.flag("chat")) {
    OCTAVO_TRY(prompt.ids, encode_text(*engine.tokenizer, *prompt.text,
                                       {.parse_special = false, .add_special = true}, terminal));
    return {};
  }
  Conversation conversation(options.text("system"));
  conversation.add("user", *prompt.text);
  OCTAVO_TRY(ChatPrompt rendered, render_chat(engine, conversation.messages()));
  prompt.text = std::move(rendered.text);
  prompt.ids = std::move(rendered.ids);
  return {};
}

std::string header(int index) { return fmt::format("--- answer {} ---\n", index); }

// Streams the first answer; the others, which come at the same time, are printed after it.
class TextPrinter {
 public:
  TextPrinter(Terminal& terminal, int num_choices, StopSignals& interrupt)
      : terminal_(terminal), has_headers_(num_choices > 1), interrupt_(interrupt) {}

  void on_text(int index, std::string_view text) {
    if (index != 0) return;
    print_header(0);
    print(text);
    if (!terminal_.can_write()) interrupt_.request_stop();
  }

  void finish(const RequestOutput& output) {
    for (const CompletionOutput& choice : output.outputs) {
      print_header(choice.index);
      if (choice.index != 0) print(choice.text);
      if (!at_line_start_ && (has_headers_ || terminal_.output_is_terminal())) print("\n");
    }
  }

 private:
  void print_header(int index) {
    if (!has_headers_ || index < next_header_) return;
    next_header_ = index + 1;
    print(header(index));
  }
  void print(std::string_view text) {
    terminal_.write(text);
    if (!text.empty()) at_line_start_ = text.back() == '\n';
  }

  Terminal& terminal_;
  bool has_headers_;
  StopSignals& interrupt_;
  int next_header_ = 0;
  bool at_line_start_ = true;
};

double per_second(size_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

std::string guesses(const RequestMetrics& metrics) {
  if (!metrics.speculates) return "";
  return fmt::format("; {} of {} guessed tokens came true", metrics.num_accepted_tokens,
                     metrics.num_draft_tokens);
}

std::string figures(const RequestOutput& output, double load_s) {
  size_t tokens = 0;
  std::vector<std::string_view> reasons;
  for (const CompletionOutput& choice : output.outputs) {
    tokens += choice.token_ids.size();
    reasons.push_back(name(choice.finish_reason));
  }
  if (tokens == 0 && output.outputs.front().finish_reason == FinishReason::abort)
    return "[stopped while the prompt was read]";
  // The first token of each answer comes out of the prefill.
  const size_t decoded = tokens - std::min(tokens, output.outputs.size());
  return fmt::format(
      "[loaded in {:.2f} s; prompt: {} tokens, {:.1f} tokens/s; answer: {} tokens, {:.1f} "
      "tokens/s{}; end: {}; seed: {}]",
      load_s, output.prompt_token_ids.size(),
      per_second(output.prompt_token_ids.size(), output.metrics.prefill_s()), tokens,
      per_second(decoded, output.metrics.decode_s()), guesses(output.metrics),
      fmt::join(reasons, ", "), output.seed);
}

void give_hint(const Prompt& prompt, const OptionValues& options, const LoadedEngine& engine,
               Terminal& terminal) {
  if (engine.chat_template && prompt.text && !options.flag("chat"))
    terminal.remark(
        "octavo: hint: this model was made for conversation; with --chat the prompt becomes a "
        "user's message");
}

using PrefillSink = std::function<void(int done, int total)>;

// Times the prompt's forwards and then, once all of it is read, those of the answer.
PrefillSink with_profiles(Transformer& model, StepProfile& prefill, StepProfile& decode,
                          PrefillSink progress) {
  return [&model, &prefill, &decode, progress = std::move(progress)](int done, int total) {
    model.set_profile(done == total ? &decode : &prefill);
    progress(done, total);
  };
}

Result<void> generate_and_print(const LoadedEngine& engine, Request request, ShownOutput shown,
                                bool as_json, Terminal& terminal) {
  StopSignals interrupt;
  TextPrinter printer(terminal, request.params.n, interrupt);
  RequestEvents events;
  StepProfile prefill, decode;
  events.on_prefill = prefill_progress(terminal);
  if (as_json) {
    events.on_prefill = with_profiles(*engine.model, prefill, decode, std::move(events.on_prefill));
    events.on_finish = [&](const RequestOutput&) { engine.model->set_profile(nullptr); };
    shown.prefill = &prefill;
    shown.decode = &decode;
  } else {
    events.on_delta = [&](const ChoiceDelta& delta) { printer.on_text(delta.index, delta.text); };
  }
  const auto generated =
      engine.engine->run(std::move(request), std::move(events), interrupt.first());
  if (!generated) return tl::make_unexpected(generated.error());
  const RequestOutput& output = *generated;
  if (as_json)
    terminal.write(dump_line(request_json(output, shown, *engine.tokenizer)));
  else
    printer.finish(output);
  if (terminal.output_is_terminal()) terminal.remark(figures(output, shown.load_s));
  if (interrupt.came()) return fail(ErrorCode::cancelled, "stopped by Ctrl-C");
  return {};
}

}  // namespace

Result<void> run_generate(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  if (options.flag("quiet")) terminal.be_quiet();
  if (options.is_given("input")) return run_generate_batch(invocation, terminal);
  OCTAVO_CHECK_OK(check_flags(options));
  OCTAVO_CHECK_OK(check_engine_flags(options));
  Request request;
  OCTAVO_TRY(request.params, read_sampling_params(options));
  EngineOptions engine_options = read_engine_options(options);
  if (!options.is_given("max_num_seqs"))
    engine_options.max_num_seqs = std::min(request.params.n, engine_options.max_num_batched_tokens);
  OCTAVO_TRY(engine_options.model, find_model(invocation.positionals[0], terminal));
  use_model_defaults(request.params, options, find_in_catalog(engine_options.model));
  OCTAVO_TRY(Prompt prompt, read_prompt(options));
  OCTAVO_TRY(const std::string chat_template, read_template(options.text("chat_template")));

  const auto start = std::chrono::steady_clock::now();
  OCTAVO_TRY(LoadedEngine engine, load_generator(std::move(engine_options), terminal));
  OCTAVO_CHECK_OK(use_template(engine, chat_template));
  const std::chrono::duration<double> load_time = std::chrono::steady_clock::now() - start;
  give_hint(prompt, options, engine, terminal);
  OCTAVO_CHECK_OK(encode_prompt(prompt, options, engine, terminal));
  request.prompt_token_ids = std::move(prompt.ids);
  const ShownOutput shown{std::move(prompt.text), request.params.logprobs.has_value(),
                          request.params.prompt_logprobs.has_value(), load_time.count()};
  return generate_and_print(engine, std::move(request), shown, options.flag("json"), terminal);
}

}  // namespace octavo::cli
