#include "engine/engine_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <exception>
#include <utility>

#include "base/rng.h"
#include "engine/admission.h"
#include "model/lora.h"
#include "sampling/logprobs.h"

namespace octavo {
namespace {

std::function<double()> clock_from_now() {
  return [start = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
}

// Not if rows of the prompt are looked at that would not be computed then.
bool reads_prefix_cache(const Request& request) {
  return request.pooling ? request.pooling->type == PoolingType::last
                         : !request.params.prompt_logprobs;
}

}  // namespace

Result<std::unique_ptr<EngineCore>> EngineCore::create(Model& model, const Tokenizer& tokenizer,
                                                       EngineCoreOptions options) {
  const ModelLimits& limits = model.limits();
  SchedulerOptions& scheduler_options = options.scheduler;
  if (scheduler_options.max_model_len == 0) scheduler_options.max_model_len = limits.context_length;
  if (!options.clock) options.clock = clock_from_now();
  if (limits.is_encoder) {
    scheduler_options.whole_prompts = true;
    // What follows a token changes its K and V: a common beginning has nothing in common.
    scheduler_options.enable_prefix_caching = false;
  }
  OCTAVO_TRY(std::unique_ptr<Scheduler> scheduler,
             Scheduler::create(scheduler_options, limits.num_blocks, limits.block_size));
  // Sparse: a step draws from as many rows as sequences run, not from the most there can be.
  OCTAVO_TRY(AlignedBuffer logits,
             AlignedBuffer::allocate(static_cast<size_t>(limits.max_logits_rows) *
                                         static_cast<size_t>(limits.logits_stride) * sizeof(float),
                                     AlignedBuffer::Use::sparse));
  return std::unique_ptr<EngineCore>(new EngineCore(model, tokenizer, std::move(options),
                                                    std::move(scheduler), std::move(logits)));
}

EngineCore::EngineCore(Model& model, const Tokenizer& tokenizer, EngineCoreOptions options,
                       std::unique_ptr<Scheduler> scheduler, AlignedBuffer logits)
    : model_(model),
      tokenizer_(tokenizer),
      options_(std::move(options)),
      scheduler_(std::move(scheduler)),
      // Rows of the output matrix beyond the tokenizer's size are padding: never drawn, never
      // listed.
      num_tokens_(std::min(static_cast<int>(tokenizer.vocab_size()), model.limits().vocab_size)),
      logits_(std::move(logits)) {
  for (int i = 0; i < (options_.pool ? options_.pool->size() : 1); ++i)
    samplers_.emplace_back(num_tokens_);
}

Result<void> EngineCore::check(const Request& request) const {
  return check_request(
      request, {.num_tokens = num_tokens_,
                .max_model_len = scheduler_->options().max_model_len,
                .num_blocks = model_.limits().num_blocks,
                .block_size = model_.limits().block_size,
                .max_logprobs = options_.max_logprobs,
                .max_lora_rank = model_.limits().max_lora_rank,
                .hidden_size = model_.limits().hidden_size,
                .is_encoder = model_.limits().is_encoder,
                .has_priorities = scheduler_->options().policy == SchedulingPolicy::priority});
}

Result<void> EngineCore::prepare(Request& request) const {
  OCTAVO_CHECK_OK(check(request));
  if (request.rules) return {};
  OCTAVO_TRY(request.rules, take_rules(request.params));
  return {};
}

// Damaged weights are the reason, whatever came of them.
Result<void> EngineCore::check_weights(bool wait) const {
  return options_.check_weights ? options_.check_weights(wait) : Result<void>();
}

// --- coming and going -----------------------------------------------------------------------

void EngineCore::add(RequestId id, Request request, RequestEvents events, double arrival_s) {
  assert(!requests_.contains(id));
  auto active = std::make_unique<Active>();
  Active& added = *active;
  added.id = id;
  added.request = std::move(request);
  if (!added.request.adapter) added.request.adapter = options_.adapter;
  added.events = std::move(events);
  added.output.request_id = raw(id);
  added.output.prompt_token_ids = added.prompt();
  added.output.seed = added.request.params.seed.value_or(fresh_seed());
  added.output.metrics.arrival_ts = arrival_s;
  added.output.metrics.speculates =
      options_.speculator && !added.request.pooling && added.request.num_speculative_tokens != 0;
  requests_.emplace(id, std::move(active));

  if (const auto checked = prepare(added.request); !checked) {
    end(added, checked.error());
    return finish_requests();
  }
  const SamplingParams& params = added.request.params;
  added.max_tokens = *tokens_to_generate(added.request, scheduler_->options().max_model_len);
  added.output.metrics.max_tokens = added.max_tokens;
  const auto& pooling = added.request.pooling;
  if (pooling)
    added.pooler.emplace(*pooling, static_cast<int>(added.prompt().size()));
  else
    for (int i = 0; i < params.n; ++i)
      added.choices.push_back(std::make_unique<Sequence>(i, params, *added.request.rules,
                                                         tokenizer_, added.max_tokens,
                                                         added.request.shown_control_tokens));
  added.num_unfinished = static_cast<int>(added.choices.size());
  if (params.prompt_logprobs && !pooling)
    added.output.prompt_logprobs.emplace_back();  // the first has none
  const auto sequence = scheduler_->add({.tokens = added.prompt(),
                                         .max_new_tokens = added.max_tokens,
                                         .key = key_of(added.request),
                                         .arrival_s = arrival_s,
                                         .priority = added.request.priority,
                                         .reads_prefix_cache = reads_prefix_cache(added.request)});
  if (!sequence) {
    end(added, sequence.error());
    return finish_requests();
  }
  added.ids.push_back(*sequence);
  places_.emplace(*sequence, Place{&added, 0});
}

PrefixKey EngineCore::key_of(const Request& request) const {
  const auto& adapter = request.adapter ? request.adapter : options_.adapter;
  return {.salt = request.cache_salt, .adapter = adapter ? adapter->identity() : std::string()};
}

void EngineCore::cancel(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  end(*found->second, FinishReason::abort);
  finish_requests();
}

void EngineCore::cancel_all() {
  for (auto& [id, request] : requests_) end(*request, FinishReason::abort);
  finish_requests();
}

std::vector<LiveRequest> EngineCore::live_requests() const {
  std::vector<LiveRequest> live;
  for (const auto& [id, request] : requests_) {
    const RequestMetrics& metrics = request->output.metrics;
    LiveRequest& entry = live.emplace_back(
        LiveRequest{.id = id,
                    .num_prompt_tokens = static_cast<int>(request->prompt().size()),
                    .num_cached_tokens = request->output.num_cached_tokens,
                    .num_generation_tokens = metrics.num_generation_tokens,
                    .num_preemptions = metrics.num_preemptions,
                    .age_s = now() - metrics.arrival_ts});
    for (const SeqId sequence : request->ids) {
      entry.num_running += scheduler_->is_running(sequence);
      entry.num_blocks += scheduler_->num_blocks(sequence);
    }
  }
  std::sort(live.begin(), live.end(),
            [](const LiveRequest& a, const LiveRequest& b) { return raw(a.id) < raw(b.id); });
  return live;
}

// --- a step ---------------------------------------------------------------------------------

bool EngineCore::step(std::stop_token stop) {
  if (const auto checked = check_weights(false); !checked)
    for (auto& [id, request] : requests_) end(*request, checked.error());
  finish_requests();
  if (!scheduler_->has_work()) {
    if (options_.on_idle) options_.on_idle(*this);
    return false;
  }

  ++step_;
  num_prompt_tokens_ = 0;
  heartbeat_.beat(EnginePhase::planning);
  const double guess_s = now();
  if (options_.speculator) guess();
  StepReport report{.start_s = now()};
  report.draft_s = report.start_s - guess_s;
  const Step& step = scheduler_->begin_step(report.start_s);
  note_plan(step, report.start_s);
  lay_out(step);
  heartbeat_.begin_step(static_cast<int>(tokens_.size()), static_cast<int>(step.chunks.size()));
  const double planned_s = now();
  report.plan_s = planned_s - report.start_s;
  try {
    if (!compute(step, report, std::move(stop))) {
      scheduler_->abandon_step();
      return true;
    }
  } catch (const std::exception& error) {  // of the model; most likely memory has run out
    fail_step(step, error.what());
    return true;
  }
  heartbeat_.beat(EnginePhase::events);
  const double drawn_s = now();
  if (options_.on_step) {
    report.step = &step;
    report.scheduler = scheduler_.get();
    if (options_.speculator) report.speculation = &options_.speculator->stats();
  }
  scheduler_->commit(outcomes_, drawn_s - report.start_s);
  assert(scheduler_->check());
  finish_requests();
  if (options_.on_step) {
    report.commit_s = now() - drawn_s;
    report.draw_s = drawn_s - planned_s - report.forward_s;
    report.num_prompt_tokens = num_prompt_tokens_;
    for (const StepOutcome& outcome : outcomes_)
      report.num_tokens += static_cast<int>(outcome.tokens.size());
    options_.on_step(report);
  }
  return true;
}

// The model's part of a step, and the draws. False: stopped on the way.
bool EngineCore::compute(const Step& step, StepReport& report, std::stop_token stop) {
  heartbeat_.beat(EnginePhase::forward);
  const double start_s = now();
  for (const BlockCopy& copy : step.copies) model_.copy_block(copy.from, copy.to);
  if (!model_.forward({.tokens = tokens_,
                       .sequences = sequences_,
                       .logits_rows = rows_,
                       .cancel = std::move(stop)}))
    return false;
  report.forward_s = now() - start_s;
  for (const StepChunk& chunk : step.chunks) tell_prefill(chunk);
  outcomes_.clear();
  heartbeat_.beat(EnginePhase::sampling);
  draw_all();
  pool_all();
  for (Active* request : only_prompt_) finish_prompt(*request);
  return true;
}

// Nobody knows whose fault it was, so all who were in the step are told.
void EngineCore::fail_step(const Step& step, std::string_view why) {
  const Error error{ErrorCode::numeric_error,
                    fmt::format("the model failed while it computed the answer: {}", why)};
  std::vector<Active*> hit;
  for (const StepChunk& chunk : step.chunks)
    if (!chunk.padding) hit.push_back(places_.at(chunk.id).request);
  scheduler_->abandon_step();
  for (Active* request : hit) end(*request, error);
  finish_requests();
}

// Before the plan: it gives the guesses what room is left.
void EngineCore::guess() {
  guesses_.clear();
  drafted_.clear();
  StepWork work;
  for (const SeqId id : scheduler_->decoding()) {
    const Place place = places_.at(id);
    const Active& request = *place.request;
    work.add_decode(static_cast<int>(scheduler_->tokens(id).size()) - 1);
    if (request.pooler) continue;
    const Sequence& choice = *request.choices[static_cast<size_t>(place.choice)];
    // The last token of an answer need not be guessed: it comes with the one before.
    const int allowed = options_.speculator->num_speculative_tokens();
    const int most = std::min({allowed, request.request.num_speculative_tokens.value_or(allowed),
                               request.max_tokens - static_cast<int>(choice.tokens().size()) - 1});
    if (!choice.tokens().empty() && most > 0) guesses_.push_back(guess_of(id, most));
  }
  if (guesses_.empty()) return;
  try {
    options_.speculator->propose(guesses_, work, scheduler_->step_model());
  } catch (const std::exception&) {  // of a model that drafts: answers do not depend on it
    for (DraftTask& guess : guesses_) guess.draft.clear(), guess.parents.clear(), guess.q.clear();
  }
  for (const DraftTask& guess : guesses_) {
    // An empty one takes the place of one that found no room in the last step.
    scheduler_->set_drafts(guess.id, {guess.draft, guess.parents});
    drafted_.emplace(guess.id, &guess);
  }
}

DraftTask EngineCore::guess_of(SeqId id, int max_tokens) {
  const Place place = places_.at(id);
  const Active& request = *place.request;
  const auto& prediction = request.request.prediction;
  return {.id = id,
          .tokens = scheduler_->tokens(id),
          .prompt_tokens = static_cast<int>(request.prompt().size()),
          .max_tokens = max_tokens,
          .prediction = prediction ? std::span(*prediction) : std::span<const TokenId>(),
          .key = key_of(request.request),
          .params = &request.request.params,
          .seed = request.output.seed,
          .choice = static_cast<uint32_t>(place.choice),
          .eog = tokenizer_.eog(),
          .rules = &request.request.rules->tokens,
          .allowed_tokens = &request.request.allowed_tokens,
          .adapter = request.request.adapter.get(),
          .lend_blocks = [this, id](int tokens) { return scheduler_->lend_blocks(id, tokens); }};
}

void EngineCore::note_plan(const Step& step, double now_s) {
  for (const SeqId id : step.admitted) {
    const Place place = places_.at(id);
    RequestOutput& output = place.request->output;
    if (output.metrics.scheduled_ts != 0) continue;
    output.metrics.scheduled_ts = now_s;
    output.num_cached_tokens = scheduler_->num_cached_tokens(id);
    if (place.request->events.on_prefill)
      place.request->events.on_prefill(output.num_cached_tokens,
                                       static_cast<int>(place.request->prompt().size()));
  }
  for (const SeqId id : step.preempted) ++places_.at(id).request->output.metrics.num_preemptions;
}

// All chunks end to end, and what is wanted of their rows.
void EngineCore::lay_out(const Step& step) {
  tokens_.clear();
  sequences_.clear();
  rows_.clear();
  logit_rows_.clear();
  hidden_rows_.clear();
  jobs_.clear();
  pool_jobs_.clear();
  only_prompt_.clear();
  order_chunks(step);
  size_t num_ancestors = 0;
  for (const StepChunk& chunk : step.chunks)
    for (const DraftBranch& branch : chunk.branches) num_ancestors += branch.ancestors.size();
  ancestors_.clear();
  ancestors_.reserve(num_ancestors);  // sequences_ points into it
  for (const StepChunk* chunk : ordered_) lay_out(*chunk);
}

void EngineCore::lay_out(const StepChunk& chunk) {
  const auto first_row = static_cast<int>(tokens_.size());
  tokens_.insert(tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
  const int root_row = static_cast<int>(tokens_.size()) - 1 - chunk.num_drafts;
  const int straight =
      chunk.branches.empty() ? chunk.num_drafts : chunk.branches.front().first_draft;
  const LoraAdapter* adapter = adapter_of(chunk);
  sequences_.push_back({.first_row = first_row,
                        .num_tokens = root_row + 1 + straight - first_row,
                        .first_position = chunk.first_position,
                        .block_table = chunk.block_table,
                        .adapter = adapter});
  for (const DraftBranch& branch : chunk.branches) {
    const size_t first = ancestors_.size();
    for (const int draft : branch.ancestors) ancestors_.push_back(root_row + 1 + draft);
    sequences_.push_back({.first_row = root_row + 1 + branch.first_draft,
                          .num_tokens = branch.num_drafts,
                          .first_position = branch.first_position,
                          .block_table = branch.block_table,
                          .adapter = adapter,
                          .ancestors = std::span(ancestors_).subspan(first)});
  }
  if (chunk.padding)
    want_logits(first_row);  // as if it still were somebody's
  else
    add_jobs(chunk, first_row);
}

// An adapter is read once for all of its rows that lie side by side.
void EngineCore::order_chunks(const Step& step) {
  ordered_.clear();
  for (const StepChunk& chunk : step.chunks) ordered_.push_back(&chunk);
  if (model_.limits().max_lora_rank == 0) return;
  std::sort(ordered_.begin(), ordered_.end(), [&](const StepChunk* a, const StepChunk* b) {
    return std::pair(adapter_of(*a), a) < std::pair(adapter_of(*b), b);
  });
}

const LoraAdapter* EngineCore::adapter_of(const StepChunk& chunk) const {
  const auto place = places_.find(chunk.id);
  return chunk.padding || place == places_.end() ? nullptr
                                                 : place->second.request->request.adapter.get();
}

void EngineCore::keep_row(int row) {
  if (rows_.empty() || rows_.back() != row) rows_.push_back(row);
}

void EngineCore::want_logits(int row) {
  keep_row(row);
  if (logit_rows_.empty() || logit_rows_.back() != row) logit_rows_.push_back(row);
}

void EngineCore::add_pool_jobs(const StepChunk& chunk, int first_row, Active& request) {
  for (int i = 0; i < std::ssize(chunk.tokens); ++i) {
    const int position = chunk.first_position + i;
    if (!request.pooler->wants(position)) continue;
    keep_row(first_row + i);
    hidden_rows_.push_back(first_row + i);
    pool_jobs_.push_back({&request, position});
  }
  if (chunk.completes) only_prompt_.push_back(&request);
}

void EngineCore::add_jobs(const StepChunk& chunk, int first_row) {
  const Place place = places_.at(chunk.id);
  Active& request = *place.request;
  if (request.pooler) return add_pool_jobs(chunk, first_row, request);
  const auto index_of_row = [&] { return static_cast<int>(logit_rows_.size()) - 1; };
  if (request.request.params.prompt_logprobs && !request.started)
    for (size_t i = 0; i < chunk.tokens.size(); ++i) {
      // After a preemption some are known.
      const int next = chunk.first_position + static_cast<int>(i) + 1;
      if (next < std::ssize(request.output.prompt_logprobs) || next >= std::ssize(request.prompt()))
        continue;
      want_logits(first_row + static_cast<int>(i));
      jobs_.push_back({index_of_row(), &request, kPromptToken, next});
    }
  if (!chunk.completes) return;
  if (request.max_tokens == 0) return only_prompt_.push_back(&request);
  const int last_row = first_row + static_cast<int>(chunk.tokens.size()) - 1;
  want_logits(last_row - chunk.num_drafts);
  // The choices draw their first tokens from the same row.
  const int end = request.started ? place.choice + 1 : request.request.params.n;
  std::span<const Distribution> q;
  if (chunk.num_drafts > 0) q = drafted_.at(chunk.id)->q;
  for (int choice = place.choice; choice < end; ++choice)
    jobs_.push_back({index_of_row(), &request, choice, 0, chunk.num_drafts, chunk.parents, q});
  for (int i = chunk.num_drafts; i-- > 0;) want_logits(last_row - i);
}

// --- the end of a request -------------------------------------------------------------------

void EngineCore::end(Active& request, FinishReason reason) {
  if (std::exchange(request.ended, true)) return;
  for (auto& choice : request.choices)
    if (!choice->finished()) tell(request, *choice, choice->end(reason), 0);
  finished_.push_back(&request);
}

void EngineCore::end(Active& request, const Error& error) {
  if (request.ended) return;
  request.output.error = error;
  end(request, FinishReason::error);
}

void EngineCore::tell(const Active& request, const Sequence& choice, std::string_view text,
                      size_t num_tokens) {
  if (!request.events.on_delta) return;
  if (text.empty() && num_tokens == 0 && !choice.finished()) return;
  ChoiceDelta delta{.index = choice.index(), .step = step_, .text = text};
  delta.token_ids = std::span(choice.tokens()).last(num_tokens);
  if (!choice.logprobs().empty()) delta.logprobs = std::span(choice.logprobs()).last(num_tokens);
  if (choice.finished()) {
    delta.finish_reason = choice.finish_reason();
    delta.stop_reason = &choice.stop_reason();
  }
  request.events.on_delta(delta);
}

void EngineCore::tell_prefill(const StepChunk& chunk) {
  if (chunk.padding) return;
  const Place place = places_.at(chunk.id);
  const auto total = static_cast<int>(place.request->prompt().size());
  if (place.choice != 0 || chunk.first_position >= total || !place.request->events.on_prefill)
    return;
  const int done = chunk.first_position + static_cast<int>(chunk.tokens.size());
  if (done < total) place.request->events.on_prefill(done, total);
}

void EngineCore::tell_prompt_done(const Active& request) {
  const auto total = static_cast<int>(request.prompt().size());
  num_prompt_tokens_ += total;
  if (request.events.on_prefill) request.events.on_prefill(total, total);
  if (request.events.on_prompt_done) request.events.on_prompt_done(request.output);
}

// Between steps: their blocks go back first, then they are told.
void EngineCore::finish_requests() {
  while (!finished_.empty()) {
    Active& request = *finished_.back();
    finished_.pop_back();
    for (size_t i = 0; i < request.ids.size(); ++i) {
      const SeqId id = request.ids[i];
      if (options_.speculator && i < request.choices.size())
        options_.speculator->finish({.id = id,
                                     .prompt = request.prompt(),
                                     .answer = request.choices[i]->tokens(),
                                     .key = key_of(request.request)});
      scheduler_->remove(id);
      places_.erase(id);
    }
    if (const auto checked = check_weights(true); !checked && !request.output.error)
      request.output.error = checked.error();
    for (auto& choice : request.choices) request.output.outputs.push_back(choice->take_output());
    const auto node = requests_.extract(request.id);
    node.mapped()->output.finished = true;
    node.mapped()->events.on_finish(std::move(node.mapped()->output));
  }
}

}  // namespace octavo
