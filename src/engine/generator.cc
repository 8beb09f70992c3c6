#include "engine/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>

#include "base/rng.h"
#include "kv/block_size.h"
#include "sampling/logits.h"

namespace octavo {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<std::unique_ptr<Generator>> Generator::create(Model& model, const Tokenizer& tokenizer,
                                                     GeneratorOptions options) {
  OCTAVO_TRY(std::unique_ptr<BlockPool> pool,
             BlockPool::create(model.limits().num_blocks, model.limits().block_size));
  // Sparse: a request draws from as many rows as it has choices, not from the most there can be.
  OCTAVO_TRY(
      AlignedBuffer logits,
      AlignedBuffer::allocate(static_cast<size_t>(model.limits().max_logits_rows) *
                                  static_cast<size_t>(model.limits().logits_stride) * sizeof(float),
                              AlignedBuffer::Use::sparse));
  return std::unique_ptr<Generator>(
      new Generator(model, tokenizer, std::move(options), std::move(pool), std::move(logits)));
}

Generator::Generator(Model& model, const Tokenizer& tokenizer, GeneratorOptions options,
                     std::unique_ptr<BlockPool> pool, AlignedBuffer logits)
    : model_(model),
      tokenizer_(tokenizer),
      options_(std::move(options)),
      pool_(std::move(pool)),
      // Rows of the output matrix beyond the tokenizer's size are padding: never drawn, never
      // listed.
      num_tokens_(std::min(static_cast<int>(tokenizer.vocab_size()), model.limits().vocab_size)),
      logits_(std::move(logits)) {
  for (int i = 0; i < (options_.pool ? options_.pool->size() : 1); ++i)
    samplers_.emplace_back(num_tokens_);
}

Result<void> Generator::check_ids(std::span<const TokenId> ids) const {
  for (size_t i = 0; i < ids.size(); ++i)
    if (raw(ids[i]) < 0 || raw(ids[i]) >= num_tokens_)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("token id {} at position {} is not in the vocabulary (0 to {})",
                              raw(ids[i]), i, num_tokens_ - 1));
  return {};
}

// The rules for lengths: a prompt may fill the context if nothing is to be generated; else one
// token must have room, and max_tokens, if given, all of it.
Result<int> Generator::tokens_to_generate(const GenerateRequest& request) const {
  const int context = model_.limits().context_length;
  const auto prompt = static_cast<int64_t>(request.prompt_token_ids.size());
  const std::optional<int> asked = request.params.max_tokens;
  if (prompt + asked.value_or(1) > context)
    return fail(ErrorCode::context_overflow,
                asked ? fmt::format("the prompt has {} tokens and max_tokens is {}, but the "
                                    "context holds {}; shorten the "
                                    "prompt or lower max_tokens",
                                    prompt, *asked, context)
                      : fmt::format("the prompt has {} tokens and the context holds {}, the answer "
                                    "included; shorten the "
                                    "prompt",
                                    prompt, context));
  return asked.value_or(static_cast<int>(context - prompt));
}

Result<void> Generator::check_blocks(int64_t tokens, int choices) const {
  const int block_size = model_.limits().block_size;
  const int64_t needed = blocks_for(tokens, block_size) * choices;
  if (needed > model_.limits().num_blocks)
    return fail(
        ErrorCode::resource_exhausted,
        fmt::format(
            "{} x {} tokens need {} KV blocks of {} tokens and there are {}; lower n or max_tokens",
            choices, tokens, needed, block_size, model_.limits().num_blocks));
  return {};
}

Result<RequestOutput> Generator::generate(const GenerateRequest& request,
                                          const GenerateEvents& events) {
  const SamplingParams& params = request.params;
  OCTAVO_CHECK_OK(validate(params, num_tokens_));
  if (request.prompt_token_ids.empty())
    return fail(ErrorCode::invalid_argument, "the prompt is empty; give at least one token");
  OCTAVO_CHECK_OK(check_ids(request.prompt_token_ids));
  OCTAVO_TRY(const int max_tokens, tokens_to_generate(request));
  const auto prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
  OCTAVO_CHECK_OK(check_blocks(int64_t{prompt_tokens} + max_tokens, params.n));

  Run run{.request = request, .events = events, .output = {}, .choices = {}};
  run.output.prompt_token_ids = request.prompt_token_ids;
  run.output.seed = params.seed.value_or(fresh_seed());
  OCTAVO_CHECK_OK(with_sound_weights(run_request(run, max_tokens)));
  for (auto& choice : run.choices) run.output.outputs.push_back(choice->take_output());
  return std::move(run.output);
}

Result<void> Generator::run_request(Run& run, int max_tokens) {
  const auto start = std::chrono::steady_clock::now();
  OCTAVO_CHECK_OK(start_choices(run, max_tokens));
  run.output.metrics.prefill_s = seconds_since(start);
  const auto decode_start = std::chrono::steady_clock::now();
  OCTAVO_CHECK_OK(run_choices(run));
  run.output.metrics.decode_s = seconds_since(decode_start);
  return {};
}

// Computes the prompt once; the choices share its blocks and draw their first tokens from the same
// row.
Result<void> Generator::start_choices(Run& run, int max_tokens) {
  const std::vector<TokenId>& prompt = run.request.prompt_token_ids;
  const SamplingParams& params = run.request.params;
  const int last = static_cast<int>(prompt.size()) - 1;
  std::vector<float> last_row;
  const RowVisitor visit = [&](int index, std::span<const float> row) -> Result<void> {
    if (index == last) {
      last_row.assign(row.begin(), row.end());
      return {};
    }
    OCTAVO_TRY(TokenLogprobs entry,
               logprobs_of(row, prompt[static_cast<size_t>(index) + 1], *params.prompt_logprobs));
    run.output.prompt_logprobs.emplace_back(std::move(entry));
    return {};
  };
  if (params.prompt_logprobs) run.output.prompt_logprobs.emplace_back();
  BlockTable table(*pool_);
  OCTAVO_TRY(
      const bool completed,
      prefill(prompt, table, params.prompt_logprobs ? Rows::all : Rows::last, visit, run.events));
  for (int i = 0; i < params.n; ++i)
    run.choices.push_back(
        std::make_unique<Sequence>(i, params, tokenizer_, table.fork(), max_tokens));
  for (auto& choice : run.choices) {
    if (!completed)
      show(run, *choice, choice->end(FinishReason::abort));
    else if (max_tokens == 0)
      show(run, *choice, choice->end(FinishReason::length));
    else
      OCTAVO_CHECK_OK(draw(run, *choice, last_row));
  }
  return {};
}

Result<void> Generator::run_choices(Run& run) {
  std::vector<Sequence*> active;
  active.reserve(run.choices.size());
  for (;;) {
    active.clear();
    for (auto& choice : run.choices)
      if (!choice->finished()) active.push_back(choice.get());
    OCTAVO_CHECK_OK(check_weights());
    if (active.empty()) return {};
    if (run.events.cancel.stop_requested()) {
      for (Sequence* choice : active) show(run, *choice, choice->end(FinishReason::abort));
      return {};
    }
    assert(blocks_are_sound(run));
    ++run.output.metrics.decode_steps;
    if (options_.kv_cache) {
      OCTAVO_CHECK_OK(decode_step(run, active));
    } else {
      for (Sequence* choice : active) OCTAVO_CHECK_OK(recompute_step(run, *choice));
    }
  }
}

// I2, before every step of a debug build: each block is free or held, and every owner is a
// choice's.
bool Generator::blocks_are_sound(const Run& run) const {
  std::vector<BlockId> references;
  for (const auto& choice : run.choices)
    for (const BlockId id : choice->table().block_ids()) references.push_back(id);
  return pool_->check(references).has_value();
}

Result<void> Generator::check_weights(bool wait) const {
  return options_.check_weights ? options_.check_weights(wait) : Result<void>();
}

// Damaged weights are the reason, whatever came of them.
Result<void> Generator::with_sound_weights(Result<void> result) const {
  OCTAVO_CHECK_OK(check_weights(true));
  return result;
}

// One token for each of the choices, as many in one forward as fit it.
Result<void> Generator::decode_step(Run& run, std::span<Sequence* const> active) {
  const auto width = static_cast<size_t>(model_.limits().max_num_batched_tokens);
  for (size_t first = 0; first < active.size(); first += width) {
    const std::span<Sequence* const> group =
        active.subspan(first, std::min(width, active.size() - first));
    step_.clear();
    for (Sequence* choice : group) {
      const auto position =
          static_cast<int>(run.request.prompt_token_ids.size() + choice->tokens().size()) - 1;
      OCTAVO_CHECK_OK(reserve(choice->table(), position + 1));
      const auto row = static_cast<int>(step_.tokens.size());
      step_.tokens.push_back(choice->tokens().back());
      step_.rows.push_back(row);
      step_.sequences.push_back({row, 1, position, choice->table().block_ids()});
    }
    // Cancelled: the loop over steps will see it, too.
    if (!model_.forward({.tokens = step_.tokens,
                         .sequences = step_.sequences,
                         .logits_rows = step_.rows,
                         .cancel = run.events.cancel}))
      return {};
    const auto most = static_cast<size_t>(model_.limits().max_logits_rows);
    for (size_t row = 0; row < group.size(); row += most) {
      const size_t count = std::min(most, group.size() - row);
      model_.logits(std::span(step_.rows).subspan(row, count), logits());
      OCTAVO_CHECK_OK(draw_group(run, group.subspan(row, count)));
    }
  }
  return {};
}

// The next tokens of choices whose logits are the first rows, in parallel; then each is committed,
// in order.
Result<void> Generator::draw_group(Run& run, std::span<Sequence* const> choices) {
  const auto draw_one = [&](Sampler& sampler, size_t i) {
    drawn_[i] = sample(sampler, run, *choices[i], logits_row(i));
  };
  drawn_.resize(choices.size());
  if (options_.pool && choices.size() > 1)
    options_.pool->run(
        std::min(options_.pool->size(), static_cast<int>(choices.size())), [&](Team& team) {
          team.each(std::ssize(choices), [&](int64_t i) {
            draw_one(samplers_[static_cast<size_t>(team.index())], static_cast<size_t>(i));
          });
        });
  else
    for (size_t i = 0; i < choices.size(); ++i) draw_one(samplers_[0], i);
  for (size_t i = 0; i < choices.size(); ++i) {
    OCTAVO_TRY(Sample drawn, std::move(drawn_[i]));
    show(run, *choices[i], choices[i]->commit(std::move(drawn)));
  }
  return {};
}

// The step without a cache: everything so far is computed again, into fresh blocks.
Result<void> Generator::recompute_step(Run& run, Sequence& choice) {
  std::vector<TokenId> tokens = run.request.prompt_token_ids;
  tokens.insert(tokens.end(), choice.tokens().begin(), choice.tokens().end());
  OCTAVO_CHECK_OK(choice.table().truncate(0));
  std::vector<float> last_row;
  GenerateEvents quiet{.on_text = {}, .on_prefill = {}, .cancel = run.events.cancel};
  OCTAVO_TRY(const bool completed, prefill(
                                       tokens, choice.table(), Rows::last,
                                       [&](int, std::span<const float> row) -> Result<void> {
                                         last_row.assign(row.begin(), row.end());
                                         return {};
                                       },
                                       quiet));
  if (!completed) return {};  // cancelled; the loop ends the choice
  return draw(run, choice, last_row);
}

Result<void> Generator::draw(Run& run, Sequence& choice, std::span<const float> row) {
  OCTAVO_TRY(Sample drawn, sample(samplers_[0], run, choice, row));
  show(run, choice, choice.commit(std::move(drawn)));
  return {};
}

Result<Sample> Generator::sample(Sampler& sampler, const Run& run, const Sequence& choice,
                                 std::span<const float> row) const {
  const SampleRequest request{.params = run.request.params,
                              .seed = run.output.seed,
                              .choice = static_cast<uint32_t>(choice.index()),
                              .history = {run.request.prompt_token_ids, choice.tokens()},
                              .eog = tokenizer_.eog()};
  return sampler.sample(row, request);
}

void Generator::show(const Run& run, const Sequence& choice, std::string_view text) {
  if (!text.empty() && run.events.on_text) run.events.on_text(choice.index(), text);
}

// Makes room for num_tokens positions, copying blocks that are shared.
Result<void> Generator::reserve(BlockTable& table, int num_tokens) {
  OCTAVO_TRY(const std::vector<BlockCopy> copies, table.reserve(num_tokens));
  for (const BlockCopy& copy : copies) model_.copy_block(copy.from, copy.to);
  return {};
}

Result<bool> Generator::prefill(std::span<const TokenId> tokens, BlockTable& table, Rows which,
                                const RowVisitor& visit, const GenerateEvents& events) {
  const auto total = static_cast<int>(tokens.size());
  if (events.on_prefill) events.on_prefill(0, total);
  for (int first = 0; first < total;) {
    if (events.cancel.stop_requested()) return false;
    OCTAVO_CHECK_OK(check_weights());
    const int count = std::min(model_.limits().max_num_batched_tokens, total - first);
    OCTAVO_CHECK_OK(reserve(table, first + count));
    const BatchSequence sequence{0, count, first, table.block_ids()};
    step_.rows.clear();
    for (int row = 0; row < count; ++row)
      if (which == Rows::all || first + row == total - 1) step_.rows.push_back(row);
    model_.forward(
        {.tokens = tokens.subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
         .sequences = {&sequence, 1},
         .logits_rows = step_.rows});
    OCTAVO_CHECK_OK(visit_rows(step_.rows, first, visit));
    first += count;
    if (events.on_prefill) events.on_prefill(first, total);
  }
  return true;
}

float* Generator::logits() { return reinterpret_cast<float*>(logits_.data()); }

std::span<const float> Generator::logits_row(size_t i) const {
  return {reinterpret_cast<const float*>(logits_.data()) +
              i * static_cast<size_t>(model_.limits().logits_stride),
          static_cast<size_t>(num_tokens_)};
}

// Logits of the rows a few at a time; each row is visited with its number plus `offset`.
Result<void> Generator::visit_rows(std::span<const int> rows, int offset, const RowVisitor& visit) {
  const auto most = static_cast<size_t>(model_.limits().max_logits_rows);
  for (size_t first = 0; first < rows.size(); first += most) {
    const std::span<const int> some = rows.subspan(first, std::min(most, rows.size() - first));
    model_.logits(some, logits());
    for (size_t i = 0; i < some.size(); ++i)
      OCTAVO_CHECK_OK(visit(some[i] + offset, logits_row(i)));
  }
  return {};
}

Result<Generator::WindowScore> Generator::score(std::span<const TokenId> window) {
  OCTAVO_CHECK_OK(check_ids(window));
  const auto tokens = static_cast<int64_t>(window.size());
  if (tokens < 2)
    return fail(ErrorCode::invalid_argument, "a window needs at least 2 tokens to predict one");
  if (tokens > model_.limits().context_length)
    return fail(ErrorCode::context_overflow,
                fmt::format("a window has {} tokens and the context holds {}", tokens,
                            model_.limits().context_length));
  OCTAVO_CHECK_OK(check_blocks(tokens, 1));
  WindowScore score;
  BlockTable table(*pool_);
  const auto completed =
      prefill(window, table, Rows::all,
              [&](int index, std::span<const float> row) -> Result<void> {
                OCTAVO_CHECK_OK(check_finite(row));
                if (static_cast<size_t>(index) + 1 == window.size()) return {};
                const TokenId next = window[static_cast<size_t>(index) + 1];
                score.nll += log_sum_exp(row) - double{row[static_cast<size_t>(raw(next))]};
                ++score.predicted_tokens;
                return {};
              },
              {});
  OCTAVO_CHECK_OK(
      with_sound_weights(completed ? Result<void>() : tl::make_unexpected(completed.error())));
  return score;
}

}  // namespace octavo
