// Drafts on their way through a step: behind the tokens of their sequence, and where they branch,
// in blocks of their own.
#include <cassert>
#include <utility>

#include "sched/scheduler.h"

namespace octavo {

const std::vector<SeqId>& Scheduler::decoding() {
  decoding_.clear();
  for (const Sequence* s : running_)
    if (s->state == State::running && std::ssize(s->tokens) - s->num_computed == 1)
      decoding_.push_back(s->id);
  return decoding_;
}

void Scheduler::set_drafts(SeqId id, const DraftTree& drafts) {
  assert(drafts.is_valid());
  Sequence& s = at(id);
  s.drafts.assign(drafts.tokens.begin(), drafts.tokens.end());
  s.draft_parents.assign(drafts.parents.begin(), drafts.parents.end());
}

std::span<const BlockId> Scheduler::lend_blocks(SeqId id, int num_tokens) {
  Sequence& s = at(id);
  const int positions = s.num_computed + num_tokens;
  if (positions > options_.max_model_len || s.table.writes_shared_block()) return {};
  const int missing = s.table.blocks_to_reserve(positions) - pool_->num_free();
  if (missing > pool_->num_cached()) return {};
  if (missing > 0) tree_.evict(missing);
  if (!s.table.reserve(positions)) return {};
  borrowers_.push_back(id);
  return s.table.block_ids();
}

// The plan finds everything as if nothing had been lent.
void Scheduler::take_back_blocks() {
  for (const SeqId id : borrowers_) {
    const auto found = sequences_.find(id);
    if (found == sequences_.end()) continue;
    Sequence& s = *found->second;
    if (s.table.num_tokens() > s.num_computed) (void)s.table.truncate(s.num_computed);
  }
  borrowers_.clear();
}

// Whoever finds no blocks is left out, with all drafts after it.
void Scheduler::add_branches(StepChunk& chunk) {
  Sequence& s = at(chunk.id);
  if (chunk.num_drafts == 0 || s.draft_parents.empty()) return;
  const DraftTree tree = {chunk.tokens.last(static_cast<size_t>(chunk.num_drafts)), chunk.parents};
  for (const DraftSegment& segment : segments(tree)) {
    if (segment.first == 0 || branch_out(s, segment)) continue;
    const int dropped = chunk.num_drafts - segment.first;
    chunk.tokens = chunk.tokens.first(chunk.tokens.size() - static_cast<size_t>(dropped));
    chunk.num_drafts = s.num_drafts = segment.first;
    s.tokens.resize(s.tokens.size() - static_cast<size_t>(dropped));
    step_.work.draft_tokens -= dropped;
    break;
  }
  for (size_t i = 0; i < s.branches.size(); ++i) {
    s.branches[i].block_table = s.branch_tables[i].block_ids();
    s.branches[i].ancestors = s.branch_ancestors[i];
  }
  chunk.branches = s.branches;
}

// A table of its own from the last known token on: what other branches write there is not seen.
bool Scheduler::branch_out(Sequence& s, const DraftSegment& segment) {
  if (options_.kv_layout == KvCacheLayout::contiguous) return false;
  const DraftTree tree = {s.drafts, s.draft_parents};
  std::vector<int> ancestors = path_to(tree, tree.parent(segment.first));
  const int root = s.num_computed + s.planned - 1;
  const int first_position = root + static_cast<int>(ancestors.size());
  BlockTable table = s.table.fork();
  (void)table.truncate(root);
  const int num_tokens = first_position + segment.last - segment.first;
  const int missing = table.blocks_to_reserve(num_tokens) - pool_->num_free();
  if (missing > 0 && tree_.evict(missing) < missing) return false;
  if (!reserve(table, num_tokens)) return false;
  s.branch_tables.push_back(std::move(table));
  s.branch_ancestors.push_back(std::move(ancestors));
  s.branches.push_back({.first_draft = segment.first,
                        .num_drafts = segment.last - segment.first,
                        .first_position = first_position,
                        .block_table = {},
                        .ancestors = {}});
  return true;
}

// The blocks of the way that came true are the sequence's from now on.
void Scheduler::take_branch(Sequence& s, int last_draft) {
  for (size_t i = 0; i < s.branches.size(); ++i) {
    const DraftBranch& branch = s.branches[i];
    if (last_draft < branch.first_draft || last_draft >= branch.first_draft + branch.num_drafts)
      continue;
    s.table = std::move(s.branch_tables[i]);
    s.table.make_room(int64_t{s.prompt_tokens} + s.given.max_new_tokens);
  }
  s.branches.clear();
  s.branch_tables.clear();
  s.branch_ancestors.clear();
}

void Scheduler::drop_drafts(Sequence& s) {
  take_branch(s, kRoot);
  s.tokens.resize(s.tokens.size() - static_cast<size_t>(std::exchange(s.num_drafts, 0)));
  s.drafts.clear();
  s.draft_parents.clear();
}

}  // namespace octavo
