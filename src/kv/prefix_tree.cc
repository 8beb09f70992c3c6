#include "kv/prefix_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "kv/block_size.h"

namespace octavo {
namespace {

using Tokens = std::span<const TokenId>;

Tokens without_last(Tokens tokens) { return tokens.first(std::max<size_t>(tokens.size(), 1) - 1); }

int num_equal(Tokens a, Tokens b) {
  return static_cast<int>(std::ranges::mismatch(a, b).in1 - a.begin());
}

bool is_before(Tokens a, Tokens b) { return std::ranges::lexicographical_compare(a, b); }

tl::unexpected<Error> inconsistent(BlockId id, std::string_view what) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("the prefix tree is inconsistent: block {} {}", raw(id), what));
}

}  // namespace

PrefixTree::PrefixTree(BlockPool& pool, EvictionPolicy policy)
    : pool_(pool),
      policy_(policy),
      nodes_(static_cast<size_t>(pool.num_blocks())),
      tokens_(std::make_unique_for_overwrite<TokenId[]>(nodes_.size() *
                                                        static_cast<size_t>(pool.block_size()))),
      evicted_(std::bit_ceil(nodes_.size())) {}

PrefixTree::~PrefixTree() {
  for (const Node& node : nodes_)
    if (node.block.id() != kNoBlock) pool_.set_in_tree(node.block, false);
}

std::span<const TokenId> PrefixTree::tokens_of(BlockId id) const {
  return {token_store(id), static_cast<size_t>(node(id).num_tokens)};
}

std::span<const BlockId> PrefixTree::first_blocks(const PrefixKey& key) const {
  const auto root = roots_.find(key);
  if (root == roots_.end()) return {};
  return root->second.children;
}

TokenId* PrefixTree::token_store(BlockId id) const {
  return tokens_.get() + static_cast<size_t>(raw(id)) * static_cast<size_t>(pool_.block_size());
}

// --- finding ---

PrefixTree::Nearest PrefixTree::nearest(std::span<const BlockId> siblings, Tokens run) const {
  const auto place =
      std::ranges::lower_bound(siblings, run, is_before, [&](BlockId id) { return tokens_of(id); });
  Nearest best{.place = static_cast<size_t>(place - siblings.begin())};
  // Tokens shared with the run fall off to both sides of its place, so a neighbour has the most.
  const auto consider = [&](BlockId id) {
    const int equal = num_equal(tokens_of(id), run);
    if (equal > best.num_equal) best.id = id, best.num_equal = equal;
  };
  if (place != siblings.end()) consider(*place);
  if (place != siblings.begin()) consider(*std::prev(place));
  return best;
}

template <class Visit>
int PrefixTree::walk(const PrefixKey& key, Tokens tokens, Visit visit) const {
  const auto size = static_cast<size_t>(pool_.block_size());
  int found = 0;
  std::span<const BlockId> siblings = first_blocks(key);
  while (!tokens.empty()) {
    const Nearest best = nearest(siblings, tokens.first(std::min(tokens.size(), size)));
    if (best.num_equal == 0) break;
    visit(best.id);
    found += best.num_equal;
    if (std::cmp_less(best.num_equal, size)) break;
    tokens = tokens.subspan(size);
    siblings = node(best.id).children;
  }
  return found;
}

PrefixTree::Lookup PrefixTree::lookup(const PrefixKey& key, Tokens tokens) const {
  Lookup result;
  result.num_tokens = walk(key, without_last(tokens), [&](BlockId id) {
    ++result.num_blocks;
    result.num_cached_only += !is_in_use(id);
  });
  return result;
}

PrefixMatch PrefixTree::acquire(const PrefixKey& key, Tokens tokens, Purpose purpose) {
  const Tokens wanted = without_last(tokens);
  PrefixMatch match;
  match.num_tokens = share_path(key, wanted, match.blocks);
  if (std::cmp_less(match.num_tokens, wanted.size())) match.miss = why_not_more(key, tokens, match);

  auto& queries = purpose == Purpose::prompt ? stats_.prompts : stats_.recomputed;
  ++queries.lookups;
  queries.tokens += static_cast<int64_t>(wanted.size());
  queries.hit_tokens += match.num_tokens;
  if (purpose == Purpose::prompt) ++stats_.misses[static_cast<size_t>(match.miss)];
  return match;
}

PrefixTree::Pin PrefixTree::pin(const PrefixKey& key, Tokens tokens) {
  Pin pin;
  pin.num_tokens_ = share_path(key, tokens, pin.blocks_);
  return pin;
}

// Adds an owner to each block found and marks it as used.
int PrefixTree::share_path(const PrefixKey& key, Tokens tokens, std::vector<BlockRef>& blocks) {
  ++clock_;
  return walk(key, tokens, [&](BlockId id) {
    blocks.push_back(node(id).block.share());
    touch(id, 1);
  });
}

MissReason PrefixTree::why_not_more(const PrefixKey& key, Tokens tokens,
                                    const PrefixMatch& match) const {
  const auto size = static_cast<size_t>(pool_.block_size());
  const size_t full = static_cast<size_t>(match.num_tokens) / size;
  const Tokens rest = tokens.subspan(full * size);
  if (rest.size() < size) return MissReason::not_seen;
  const Hash128 before = full == 0 ? root_hash(key) : hash_of(match.blocks[full - 1].id());
  const Hash128 missing = block_hash(before, rest.first(size));
  return evicted_[evicted_place(missing)] == missing ? MissReason::evicted : MissReason::not_seen;
}

size_t PrefixTree::evicted_place(const Hash128& hash) const {
  return hash.low & (evicted_.size() - 1);  // a power of two
}

// --- inserting ---

void PrefixTree::insert(const PrefixKey& key, Tokens tokens, BlockTable& table, bool whole) {
  const auto size = static_cast<size_t>(pool_.block_size());
  if (!whole) tokens = tokens.first(tokens.size() / size * size);
  if (tokens.empty()) return;
  ++clock_;
  const auto ids = table.block_ids().first((tokens.size() + size - 1) / size);
  // Blocks are inserted in order and stay while the table has them: those in the tree come first.
  size_t i = ids.size();
  while (i > 0 && !contains(ids[i - 1])) --i;
  BlockId parent = i > 0 ? ids[i - 1] : kNoBlock;
  const Roots::iterator root = i > 0 ? node(parent).root : root_of(key);
  if (whole)
    for (BlockId known : ids.first(i)) touch(known, 0);
  for (; i < ids.size(); ++i) {
    const Tokens rest = tokens.subspan(i * size);
    const Tokens run = rest.first(std::min(rest.size(), size));
    parent = insert_block(root, parent, run, table, static_cast<int>(i));
    if (parent == kNoBlock) break;
  }
  if (root->second.children.empty()) roots_.erase(root);
}

PrefixTree::Roots::iterator PrefixTree::root_of(const PrefixKey& key) {
  const auto [root, is_new] = roots_.try_emplace(key);
  if (is_new) root->second.hash = root_hash(key);
  return root;
}

// The node that now stands for `run` below `parent`: one that was there, or the table's block.
// kNoBlock if the table's block is not its own.
BlockId PrefixTree::insert_block(Roots::iterator root, BlockId parent, Tokens run,
                                 BlockTable& table, int index) {
  const Nearest near = nearest(children(root, parent), run);
  if (std::cmp_equal(near.num_equal, run.size())) {
    if (near.num_equal == pool_.block_size())
      table.replace_block(index, node(near.id).block.share());
    touch(near.id, 0);
    return near.id;
  }
  if (!table.is_last_user(index)) return kNoBlock;
  const BlockId id = table.block_ids()[static_cast<size_t>(index)];
  add_leaf(root, parent, near.place, run, table.share_block(index));
  // An unfinished block that this one goes on from tells nothing more. Somebody who uses it keeps
  // it: it may be pinned.
  if (near.num_equal > 0 && near.num_equal == node(near.id).num_tokens && !is_in_use(near.id))
    remove_leaf(near.id);
  return id;
}

void PrefixTree::add_leaf(Roots::iterator root, BlockId parent, size_t place, Tokens run,
                          BlockRef block) {
  const BlockId id = block.id();
  auto& siblings = children(root, parent);
  if (parent != kNoBlock && siblings.empty()) candidates_.erase(candidate(parent));
  siblings.insert(siblings.begin() + static_cast<ptrdiff_t>(place), id);
  std::ranges::copy(run, token_store(id));
  pool_.set_in_tree(block, true);
  node(id) = Node{.block = std::move(block),
                  .parent = parent,
                  .num_tokens = static_cast<int>(run.size()),
                  .root = root,
                  .hash = chained_hash(root, parent, run),
                  .last_use = clock_};
  candidates_.insert(candidate(id));
  ++num_nodes_;
}

std::vector<BlockId>& PrefixTree::children(Roots::iterator root, BlockId parent) {
  return parent == kNoBlock ? root->second.children : node(parent).children;
}

Hash128 PrefixTree::chained_hash(Roots::const_iterator root, BlockId parent, Tokens run) const {
  return block_hash(parent == kNoBlock ? root->second.hash : node(parent).hash, run);
}

// --- evicting ---

PrefixTree::Candidate PrefixTree::candidate(BlockId id) const {
  const Node& leaf = node(id);
  return {policy_ == EvictionPolicy::lfu ? leaf.num_uses : 0, leaf.last_use, id};
}

void PrefixTree::touch(BlockId id, int num_uses) {
  auto listed = node(id).children.empty() ? candidates_.extract(candidate(id))
                                          : std::set<Candidate>::node_type();
  node(id).num_uses += num_uses;
  node(id).last_use = clock_;
  if (listed.empty()) return;
  listed.value() = candidate(id);
  candidates_.insert(std::move(listed));
}

int PrefixTree::evict(int num_blocks) {
  const int evicted = drop_leaves(num_blocks, [&](BlockId id) {
    if (node(id).num_tokens == pool_.block_size())
      evicted_[evicted_place(hash_of(id))] = hash_of(id);
  });
  stats_.evicted_blocks += evicted;
  return evicted;
}

void PrefixTree::clear() {
  drop_leaves(pool_.num_blocks(), [](BlockId) {});
}

// Calls before_drop for up to num_blocks blocks that nobody uses, and removes them.
template <class Function>
int PrefixTree::drop_leaves(int num_blocks, Function before_drop) {
  int dropped = 0;
  for (auto next = candidates_.begin(); next != candidates_.end() && dropped < num_blocks;) {
    BlockId id = std::get<BlockId>(*next++);
    // A parent that has lost its last child may come before the next candidate; those between the
    // two are in use and need not be looked at again.
    while (dropped < num_blocks && is_unused_leaf(id) &&
           (next == candidates_.end() || candidate(id) < *next)) {
      before_drop(id);
      const BlockId parent = node(id).parent;
      remove_leaf(id);
      ++dropped;
      id = parent;
    }
  }
  return dropped;
}

bool PrefixTree::is_unused_leaf(BlockId id) const {
  return id != kNoBlock && node(id).children.empty() && !is_in_use(id);
}

void PrefixTree::remove_leaf(BlockId id) {
  Node& leaf = node(id);
  candidates_.erase(candidate(id));
  auto& siblings = children(leaf.root, leaf.parent);
  const size_t place = nearest(siblings, tokens_of(id)).place;
  siblings.erase(siblings.begin() + static_cast<ptrdiff_t>(place));
  if (siblings.empty() && leaf.parent == kNoBlock)
    roots_.erase(leaf.root);
  else if (siblings.empty())
    candidates_.insert(candidate(leaf.parent));
  pool_.set_in_tree(leaf.block, false);
  leaf = Node();
  --num_nodes_;
}

// --- proving ---

void PrefixTree::append_references(std::vector<BlockId>& references) const {
  for (const Node& node : nodes_)
    if (node.block.id() != kNoBlock) references.push_back(node.block.id());
}

Result<void> PrefixTree::check() const {
  int nodes = 0, leaves = 0, cached = 0;
  for (int32_t i = 0; i < pool_.num_blocks(); ++i) {
    const BlockId id{i};
    if (contains(id) != pool_.is_in_tree(id))
      return inconsistent(id, "is in the tree for the pool and not for the tree, or the reverse");
    if (!contains(id)) continue;
    OCTAVO_CHECK_OK(check_node(id));
    ++nodes;
    leaves += node(id).children.empty();
    cached += !is_in_use(id);
  }
  for (const auto& [key, root] : roots_) {
    if (root.children.empty() || root.hash != root_hash(key))
      return inconsistent(kNoBlock, "(a root) has no children or a wrong hash");
    OCTAVO_CHECK_OK(check_siblings(root.children, kNoBlock));
  }
  if (nodes != num_nodes_ || std::cmp_not_equal(leaves, candidates_.size()) ||
      cached != pool_.num_cached())
    return inconsistent(kNoBlock, "(all of them): nodes, leaves or cached ones are miscounted");
  return {};
}

Result<void> PrefixTree::check_node(BlockId id) const {
  const Node& n = node(id);
  const int size = pool_.block_size();
  if (n.block.id() != id) return inconsistent(id, "is listed as another one");
  if (n.num_tokens < 1 || n.num_tokens > size || (n.num_tokens < size && !n.children.empty()))
    return inconsistent(id, "has a number of tokens that it must not have");
  if (n.children.empty() && !candidates_.contains(candidate(id)))
    return inconsistent(id, "is a leaf, but would never be evicted");
  if (n.parent != kNoBlock) {
    if (!contains(n.parent)) return inconsistent(id, "follows a block that is not in the tree");
    if (node(n.parent).root != n.root) return inconsistent(id, "follows a block of another key");
    if (is_in_use(id) && !is_in_use(n.parent))
      return inconsistent(id, "is used by somebody who does not use the block before it");
  }
  const auto& siblings = n.parent == kNoBlock ? n.root->second.children : node(n.parent).children;
  const size_t place = nearest(siblings, tokens_of(id)).place;
  if (place == siblings.size() || siblings[place] != id)
    return inconsistent(id, "is not found by its tokens");
  // Also proves that parents do not form a ring.
  if (n.hash != chained_hash(n.root, n.parent, tokens_of(id)))
    return inconsistent(id, "has a hash that is not that of its tokens");
  return check_siblings(n.children, id);
}

Result<void> PrefixTree::check_siblings(std::span<const BlockId> siblings, BlockId parent) const {
  for (size_t i = 0; i < siblings.size(); ++i) {
    if (!contains(siblings[i]) || node(siblings[i]).parent != parent)
      return inconsistent(siblings[i], "is listed below a block that it does not follow");
    if (i > 0 && !is_before(tokens_of(siblings[i - 1]), tokens_of(siblings[i])))
      return inconsistent(siblings[i], "is not after its left neighbour");
  }
  return {};
}

}  // namespace octavo
