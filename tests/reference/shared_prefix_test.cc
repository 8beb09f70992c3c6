// Sequences that hold the same blocks at the front of their contexts get the same bits whether
// those are read once for all of them or by each.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "formats/gguf.h"
#include "support/paths.h"
#include "support/test_model.h"

namespace octavo {
namespace {

using namespace testing;

// A sequence as a path through a tree of shared blocks: branch[i] names the tokens of its i-th
// stretch of blocks_per_stretch blocks; sequences whose first names are equal share those blocks.
struct Path {
  std::vector<int> branch;
  int own;     // tokens after the shared blocks, before those of the step
  int tokens;  // of the step
};

constexpr int kStretch = 128;  // positions

class SharedBatch {
 public:
  SharedBatch(Transformer& model, const std::vector<Path>& paths) : model_(model) {
    for (const Path& path : paths) add(path);
  }

  // All sequences in one step; the logits of every row.
  std::vector<float> step() {
    std::vector<TokenId> tokens;
    std::vector<BatchSequence> sequences;
    for (const Member& m : members_) {
      sequences.push_back({static_cast<int>(tokens.size()), m.tokens, m.position, m.table});
      for (int i = 0; i < m.tokens; ++i) tokens.push_back(token(m.seed, m.position + i));
    }
    EXPECT_TRUE(model_.forward({.tokens = tokens, .sequences = sequences}));
    return logits(static_cast<int>(tokens.size()));
  }

 private:
  struct Member {
    std::vector<BlockId> table;
    int position, tokens;
    unsigned seed;
  };

  TokenId token(unsigned seed, int position) const {
    std::mt19937 rng(seed * 10007 + static_cast<unsigned>(position));
    return TokenId{static_cast<int>(rng() % static_cast<unsigned>(model_.limits().vocab_size))};
  }

  void read(const std::vector<BlockId>& table, int first, int count, unsigned seed) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(token(seed, first + i));
    const BatchSequence sequence{0, count, first, table};
    model_.forward(
        {.tokens = tokens, .sequences = {&sequence, 1}, .logits_rows = std::span<const int>()});
  }

  void grow(std::vector<BlockId>& table, int positions) {
    while (std::cmp_less(table.size(), blocks_for(positions, model_.limits().block_size)))
      table.push_back(BlockId{next_block_++});
    ASSERT_LE(next_block_, model_.limits().num_blocks);
  }

  void add(const Path& path) {
    Member m{{}, 0, path.tokens, 1000 + static_cast<unsigned>(members_.size())};
    std::vector<int> names;
    for (const int name : path.branch) {
      names.push_back(name);
      const int end = m.position + kStretch;
      const auto [known, is_new] = tree_.try_emplace(names);
      if (is_new) {
        grow(m.table, end);
        read(m.table, m.position, kStretch, static_cast<unsigned>(name));
        known->second = m.table;
      }
      m.table = known->second;
      m.position = end;
    }
    grow(m.table, m.position + path.own + path.tokens);
    if (path.own > 0) read(m.table, m.position, path.own, m.seed);
    m.position += path.own;
    members_.push_back(std::move(m));
  }

  std::vector<float> logits(int rows) {
    const auto stride = static_cast<size_t>(model_.limits().logits_stride);
    std::vector<float> out(static_cast<size_t>(rows) * stride);
    std::vector<int> some;
    for (int first = 0; first < rows; first += model_.limits().max_logits_rows) {
      some.resize(static_cast<size_t>(std::min(model_.limits().max_logits_rows, rows - first)));
      std::iota(some.begin(), some.end(), first);
      model_.logits(some, out.data() + static_cast<size_t>(first) * stride);
    }
    return out;
  }

  Transformer& model_;
  std::map<std::vector<int>, std::vector<BlockId>> tree_;
  std::vector<Member> members_;
  int next_block_ = 0;
};

std::vector<float> logits_of(const std::string& path, TestModelOptions options,
                             const std::vector<Path>& paths) {
  options.context_length = 1024;
  options.contexts = 12;
  TestModel model(path, options);
  return SharedBatch(model.transformer(), paths).step();
}

void expect_same_bits(const std::string& path, TestModelOptions base,
                      const std::vector<Path>& paths, const std::string& what) {
  base.shared_prefix_attention = false;
  base.threads = 1;
  const std::vector<float> expected = logits_of(path, base, paths);
  base.shared_prefix_attention = true;
  for (const int threads : {1, 2, 5}) {
    base.threads = threads;
    ASSERT_EQ(logits_of(path, base, paths), expected) << what << ", " << threads << " threads";
  }
}

const std::string kModel = "tiny/llama-rope3/llama-rope3-Q8_0.gguf";

// The reference kernels, which know no parts, would take minutes.
std::vector<KvType> kv_types() {
  const char* isa = std::getenv("OCTAVO_ISA");
  if (isa && std::string(isa) == "ref") return {KvType::f16};
  return {KvType::f32, KvType::f16, KvType::bf16, KvType::int8};
}

// Two parts, and what is not shared: own tokens, other branches, a front shorter than a part.
const std::vector<Path> kTree = {{{1, 2, 3, 4}, 10, 1}, {{1, 2}, 70, 1}, {{7, 2, 3, 4}, 0, 1},
                                 {{1, 2, 3, 4}, 1, 1},  {{1}, 0, 1},     {{1, 2, 3}, 5, 1},
                                 {{7, 2, 3, 4}, 9, 1},  {{}, 3, 1},      {{1, 2, 3, 4}, 90, 1},
                                 {{1, 2, 8, 9}, 2, 1}};

std::vector<Path> with_tokens(std::vector<Path> paths, std::vector<int> tokens) {
  for (size_t i = 0; i < paths.size(); ++i) paths[i].tokens = tokens[i % tokens.size()];
  return paths;
}

TEST(SharedPrefix, ATreeOfSequences) {
  for (const KvType type : kv_types())
    for (const int block_size : {16, 32, 128})
      expect_same_bits(test_data(kModel), {.kv_cache_dtype = type, .block_size = block_size}, kTree,
                       "decode");
}

// Chunks of many tokens, which take no part, beside few and single ones.
TEST(SharedPrefix, ChunksAmongSingleTokens) {
  for (const KvType type : kv_types())
    for (const auto& tokens : std::vector<std::vector<int>>{{1, 3, 2}, {60, 1, 1}, {5}})
      expect_same_bits(test_data(kModel), {.kv_cache_dtype = type}, with_tokens(kTree, tokens),
                       "chunks");
}

// Windows that end inside shared parts, at their borders, and before them.
TEST(SharedPrefix, Windows) {
  const std::string path = test_data(kModel);
  const auto layers = static_cast<size_t>(read_model_config(*GgufFile::open(path))->num_layers);
  for (const int window : {20, 256, 300, 520})
    for (const KvType type : kv_types())
      for (const auto& tokens : std::vector<std::vector<int>>{{1}, {1, 4}}) {
        std::vector<int> windows(layers, 0);
        windows[0] = window;
        expect_same_bits(path, {.kv_cache_dtype = type, .windows = windows},
                         with_tokens(kTree, tokens), "window " + std::to_string(window));
      }
}

// Few sequences, whose own parts are split over threads, and many: more rows than an item holds.
TEST(SharedPrefix, GroupsOfAllSizes) {
  for (const char* name : {"llama-rope3", "qwen2", "llama-tied"})
    for (const int count : {2, 3, 9, 30}) {
      std::vector<Path> paths;
      for (int i = 0; i < count; ++i) paths.push_back({{1, 2}, i % 3 == 2 ? 60 : i, 1});
      expect_same_bits(test_data("tiny/" + std::string(name) + "/" + name + "-Q4_0.gguf"), {},
                       paths, std::string(name) + ", " + std::to_string(count) + " sequences");
    }
}

}  // namespace
}  // namespace octavo
