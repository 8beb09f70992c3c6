// The part of a step after the forward: rows of logits become tokens.
#include <algorithm>

#include "engine/engine_core.h"
#include "sampling/logprobs.h"

namespace octavo {

void EngineCore::draw_all() {
  auto job = jobs_.begin();
  for (size_t first = 0; first < logit_rows_.size();) {
    const size_t count = rows_at_once(first);
    model_.logits(std::span(std::as_const(logit_rows_)).subspan(first, count), logits());
    const auto end = std::find_if(job, jobs_.end(), [&](const Job& other) {
      return std::cmp_greater_equal(other.row, first + count);
    });
    take_all({job, end}, static_cast<int>(first));
    job = end;
    first += count;
  }
}

void EngineCore::pool_all() {
  if (pool_jobs_.empty()) return;
  const auto size = static_cast<size_t>(model_.limits().hidden_size);
  hidden_.resize(hidden_rows_.size() * size);
  model_.hidden(hidden_rows_, hidden_.data());
  for (size_t i = 0; i < pool_jobs_.size(); ++i)
    pool_jobs_[i].request->pooler->add(pool_jobs_[i].position,
                                       std::span(hidden_).subspan(i * size, size));
}

// Of one that asked for no token.
void EngineCore::finish_prompt(Active& request) {
  tell_prompt_done(request);
  if (!request.pooler) return end(request, FinishReason::length);
  auto embedding = request.pooler->finish();
  if (!embedding) return end(request, embedding.error());
  request.output.embedding = std::move(*embedding);
  request.output.metrics.first_token_ts = request.output.metrics.last_token_ts = now();
  end(request, FinishReason::stop);
}

// As many rows from `first` on as there is memory for, none of a job without its others.
size_t EngineCore::rows_at_once(size_t first) const {
  const auto most = static_cast<size_t>(model_.limits().max_logits_rows);
  if (logit_rows_.size() - first <= most) return logit_rows_.size() - first;
  const auto straddles = std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& job) {
    return std::cmp_less(job.row, first + most) &&
           std::cmp_greater_equal(job.row + job.num_drafts, first + most);
  });
  return straddles == jobs_.end() ? most : static_cast<size_t>(straddles->row) - first;
}

// In parallel; then each is delivered, in order.
void EngineCore::take_all(std::span<Job> jobs, int first_row) {
  int count = 0;
  for (Job& job : jobs) {
    job.first_taken = count;
    count += 1 + job.num_drafts;
  }
  taken_.resize(static_cast<size_t>(count));
  if (options_.pool && jobs.size() > 1)
    options_.pool->run(std::min(options_.pool->size(), static_cast<int>(jobs.size())),
                       [&](Team& team) {
                         team.each(std::ssize(jobs), [&](int64_t i) {
                           take(jobs[static_cast<size_t>(i)], first_row,
                                samplers_[static_cast<size_t>(team.index())]);
                         });
                       });
  else
    for (Job& job : jobs) take(job, first_row, samplers_[0]);
  drawn_at_ = now();
  for (const Job& job : jobs)
    if (!job.request->ended) deliver(job);
}

// Each token is drawn with everything before it known. If nobody drew its guess at random, it is
// drawn as it would be without a guess: no answer changes. Else no distribution does. A guess that
// comes true saves the step that would have computed it.
void EngineCore::take(Job& job, int first_row, Sampler& sampler) {
  const auto stride = static_cast<size_t>(model_.limits().logits_stride);
  for (;;) {
    const std::span<const float> row(
        reinterpret_cast<const float*>(logits_.data()) +
            static_cast<size_t>(job.row + 1 + job.last_draft - first_row) * stride,
        static_cast<size_t>(num_tokens_));
    Result<Sample>& taken = taken_[static_cast<size_t>(job.first_taken + job.num_taken++)];
    if (job.choice == kPromptToken) {
      taken = take_prompt_token(job, row);
      return;
    }
    taken = take_answer_token(job, row, sampler);
    if (!taken || job.num_drafts == 0) return;
    const int next = drafts_of(job).child(job.last_draft, taken->token);
    if (next == kRoot) return;
    job.last_draft = next;
  }
}

Result<Sample> EngineCore::take_prompt_token(const Job& job, std::span<const float> row) const {
  const Active& request = *job.request;
  const TokenId token = request.prompt()[static_cast<size_t>(job.index)];
  OCTAVO_TRY(TokenLogprobs entry, logprobs_of(row, token, *request.request.params.prompt_logprobs));
  return Sample{token, std::move(entry)};
}

Result<Sample> EngineCore::take_answer_token(const Job& job, std::span<const float> row,
                                             Sampler& sampler) const {
  const Active& request = *job.request;
  std::vector<TokenId> guesses, buffer;
  const TokenHistory known = history(job, job.last_draft, buffer);
  const std::vector<uint64_t> allowed =
      allowed_after(&request.request.allowed_tokens, known.generated, num_tokens_);
  return sampler.sample_among(guesses_after(job, job.last_draft, guesses), row,
                              {.params = request.request.params,
                               .seed = request.output.seed,
                               .choice = static_cast<uint32_t>(job.choice),
                               .history = known,
                               .eog = tokenizer_.eog(),
                               .rules = &request.request.rules->tokens,
                               .allowed = allowed});
}

DraftTree EngineCore::drafts_of(const Job& job) const {
  const SeqId id = job.request->ids[static_cast<size_t>(job.choice)];
  return {scheduler_->tokens(id).last(static_cast<size_t>(job.num_drafts)), job.parents};
}

// Of those that were drawn at random: what may come behind a draft.
Guesses EngineCore::guesses_after(const Job& job, int draft, std::vector<TokenId>& buffer) const {
  buffer.clear();
  if (job.q.empty()) return {};
  const DraftTree tree = drafts_of(job);
  const Distribution* q = nullptr;
  for (int next = draft + 1; next < tree.size(); ++next) {
    if (tree.parent(next) != draft) continue;
    buffer.push_back(tree.tokens[static_cast<size_t>(next)]);
    if (!q) q = &job.q[static_cast<size_t>(next)];
  }
  return {buffer, q};
}

// What comes before the token behind a draft. Drafts that leave the straight way are no neighbours
// of the answer: they are joined in the buffer.
TokenHistory EngineCore::history(const Job& job, int draft, std::vector<TokenId>& buffer) const {
  const Active& request = *job.request;
  const auto choice = static_cast<size_t>(job.choice);
  const std::vector<TokenId>& answer = request.choices[choice]->tokens();
  if (draft == kRoot) return {request.prompt(), answer};
  const DraftTree tree = drafts_of(job);
  const std::vector<int> path = path_to(tree, draft);
  if (std::ssize(path) == draft + 2)
    return {request.prompt(),
            scheduler_->tokens(request.ids[choice])
                .subspan(request.prompt().size(), answer.size() + path.size() - 1)};
  buffer.assign(answer.begin(), answer.end());
  for (const int step : std::span(path).subspan(1))
    buffer.push_back(tree.tokens[static_cast<size_t>(step)]);
  return {request.prompt(), buffer};
}

void EngineCore::deliver(const Job& job) {
  Active& request = *job.request;
  const std::span<Result<Sample>> taken = std::span(taken_).subspan(
      static_cast<size_t>(job.first_taken), static_cast<size_t>(job.num_taken));
  if (job.choice == kPromptToken) {
    if (!taken[0]) return end(request, taken[0].error());
    request.output.prompt_logprobs.push_back(std::move(taken[0]->logprobs));
    return;
  }
  const auto i = static_cast<size_t>(job.choice);
  Sequence& choice = *request.choices[i];
  const size_t before = choice.tokens().size();
  for (Result<Sample>& sample : taken) {
    if (choice.finished()) break;  // inside the drafts
    if (!sample) return end(request, sample.error());
    commit_token(request, choice, std::move(*sample));
  }
  const size_t gained = choice.tokens().size() - before;
  // The end of an answer may have been guessed, too.
  if (job.num_drafts > 0) note_drafts(job, std::min(static_cast<int>(gained), job.num_taken - 1));
  outcomes_.push_back({.id = request.ids[i],
                       .tokens = std::span(choice.tokens()).last(gained),
                       .finished = choice.finished(),
                       .last_draft = job.last_draft});
  if (choice.finished() && --request.num_unfinished == 0) {
    request.ended = true;
    finished_.push_back(&request);
  }
}

void EngineCore::note_drafts(const Job& job, int num_accepted) {
  Active& request = *job.request;
  request.output.metrics.num_draft_tokens += job.num_drafts;
  request.output.metrics.num_accepted_tokens += num_accepted;
  options_.speculator->verified(request.ids[static_cast<size_t>(job.choice)], job.num_drafts,
                                num_accepted, drafts_of(job).has_child(job.last_draft));
}

void EngineCore::commit_token(Active& request, Sequence& choice, Sample sample) {
  const auto i = static_cast<size_t>(choice.index());
  if (i >= request.ids.size()) {  // a further choice begins
    request.ids.push_back(scheduler_->fork(request.ids[0]));
    places_.emplace(request.ids[i], Place{&request, choice.index()});
  }
  RequestMetrics& metrics = request.output.metrics;
  if (!std::exchange(request.started, true)) {
    metrics.first_token_ts = drawn_at_;
    tell_prompt_done(request);
    request.last_step = step_;
  }
  if (std::exchange(request.last_step, step_) != step_) ++metrics.decode_steps;
  metrics.last_token_ts = drawn_at_;
  ++metrics.num_generation_tokens;
  const std::string text = choice.commit(std::move(sample));
  tell(request, choice, text, 1);
}

}  // namespace octavo
