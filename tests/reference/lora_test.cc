// Adapters: the same logits as the model with the adapter merged into its weights, whichever file
// it comes from, and the same bits whoever runs beside it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "support/lora_files.h"
#include "support/paths.h"
#include "support/temp_folder.h"
#include "support/test_model.h"

namespace octavo {
namespace {

using namespace testing;

using Rows = std::vector<std::vector<float>>;

std::vector<TokenId> random_tokens(size_t count, int vocab_size, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < count; ++i)
    tokens.push_back(TokenId{static_cast<int>(rng() % static_cast<unsigned>(vocab_size))});
  return tokens;
}

double largest_difference(const Rows& a, const Rows& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < a[i].size(); ++k)
      largest = std::max(largest, std::fabs(double{a[i][k]} - double{b[i][k]}));
  return largest;
}

bool same_bits(const Rows& a, const Rows& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) return false;
  return true;
}

constexpr TestModelOptions kExact = {
    .dtype = ComputeType::float32, .kv_cache_dtype = KvType::f32, .max_lora_rank = 64};

// Biases, norms, windows, fused matrices, experts; q and k rows in both orders.
TEST(Lora, EqualsTheMergedModel) {
  const TempFolder folder;
  for (const char* name :
       {"llama-tied", "mistral", "qwen2", "qwen3", "phi3", "gemma3", "mixtral"}) {
    SCOPED_TRACE(name);
    const std::string model = tiny_data(name);
    const MadeLora made(model, {.seed = 3, .rank = 5, .alpha = 10});
    TestModel base(model, kExact);
    TestModel merged(made.write_merged(folder.file(name + std::string("-merged"))), kExact);
    const auto tokens = random_tokens(40, base.transformer().limits().vocab_size, 7);
    const Rows plain = base.logits(tokens, positions_of(tokens));
    const Rows expected = merged.logits(tokens, positions_of(tokens));

    base.use_adapter(base.load_adapter(made.write_peft(folder.file(name))));
    const Rows adapted = base.logits(tokens, positions_of(tokens));
    EXPECT_LT(largest_difference(adapted, expected), 1e-3);
    EXPECT_GT(largest_difference(adapted, plain), 0.05);

    const auto gguf = base.load_adapter(made.write_gguf(folder.file(name + std::string(".gguf"))));
    base.use_adapter(gguf);
    EXPECT_TRUE(same_bits(base.logits(tokens, positions_of(tokens)), adapted));
    base.use_adapter(nullptr);
    EXPECT_TRUE(same_bits(base.logits(tokens, positions_of(tokens)), plain));
  }
}

TEST(Lora, EqualsTheMergedModelWithAnotherScaleAndFewModules) {
  const TempFolder folder;
  const std::string model = tiny_data("llama-tied");
  const MadeLora made(model, {.rank = 16, .alpha = 4, .only = "v_proj", .use_rslora = true});
  TestModel base(model, kExact);
  TestModel merged(made.write_merged(folder.file("merged")), kExact);
  const auto tokens = random_tokens(40, base.transformer().limits().vocab_size, 7);
  base.use_adapter(base.load_adapter(made.write_peft(folder.file("peft"))));
  EXPECT_LT(largest_difference(base.logits(tokens, positions_of(tokens)),
                               merged.logits(tokens, positions_of(tokens))),
            1e-3);
}

// Odd ranks: rows that fill no line of memory.
TEST(Lora, EqualsTheMergedModelInSmallTypes) {
  const TempFolder folder;
  const std::string model = tiny_data("llama-tied");
  for (const DType type : {DType::f16, DType::bf16})
    for (const int rank : {1, 5, 17}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(type)) + ", rank " + std::to_string(rank));
      const MadeLora made(model, {.rank = rank, .type = type});
      TestModel base(model, kExact), merged(made.write_merged(folder.file("merged")), kExact);
      const auto tokens = random_tokens(20, base.transformer().limits().vocab_size, 7);
      base.use_adapter(base.load_adapter(made.write_peft(folder.file("peft"))));
      EXPECT_LT(largest_difference(base.logits(tokens, positions_of(tokens)),
                                   merged.logits(tokens, positions_of(tokens))),
                1e-3);
    }
}

TEST(Lora, HasAnIdentityThatIsItsContent) {
  const TempFolder folder;
  const std::string model = tiny_data("llama-tied");
  TestModel base(model, kExact);
  const MadeLora one(model, {.seed = 1}), two(model, {.seed = 2}), louder(model, {.alpha = 9});
  const auto peft = base.load_adapter(one.write_peft(folder.file("one")));
  EXPECT_EQ(peft->identity(), base.load_adapter(one.write_gguf(folder.file("g")))->identity());
  EXPECT_EQ(peft->identity(), base.load_adapter(one.write_peft(folder.file("two")))->identity());
  EXPECT_NE(peft->identity(), base.load_adapter(two.write_peft(folder.file("one")))->identity());
  EXPECT_NE(peft->identity(), base.load_adapter(louder.write_peft(folder.file("one")))->identity());
  EXPECT_EQ(peft->rank(), 4);
}

// A batch of prompts, then of prompts' ends and single tokens, with and without adapters, in no
// order; and each sequence alone.
class Mixed {
 public:
  struct Member {
    std::vector<TokenId> tokens;
    const LoraAdapter* adapter;
    std::vector<BlockId> table = {};
    int done = 0;
  };

  Mixed(Transformer& model, std::vector<Member> members)
      : model_(model), members_(std::move(members)) {
    int next = 0;
    for (Member& member : members_)
      for (int i = 0; i < 4; ++i) member.table.push_back(BlockId{next++});
  }

  // All logits of every member, chunks[step % size] tokens at a time of member (step + i).
  std::vector<Rows> run(const std::vector<int>& chunks) {
    std::vector<Rows> out(members_.size());
    for (size_t step = 0;; ++step)
      if (!advance(step, chunks, out)) return out;
  }

 private:
  bool advance(size_t step, const std::vector<int>& chunks, std::vector<Rows>& out) {
    std::vector<TokenId> tokens;
    std::vector<BatchSequence> sequences;
    std::vector<size_t> who;
    for (size_t i = 0; i < members_.size(); ++i) {
      Member& m = members_[i];
      const int left = static_cast<int>(m.tokens.size()) - m.done;
      const int count = std::min(left, chunks[(step + i) % chunks.size()]);
      if (count == 0) continue;
      sequences.push_back({static_cast<int>(tokens.size()), count, m.done, m.table, m.adapter});
      tokens.insert(tokens.end(), m.tokens.begin() + m.done, m.tokens.begin() + m.done + count);
      who.insert(who.end(), static_cast<size_t>(count), i);
      m.done += count;
    }
    if (tokens.empty()) return false;
    // Not all rows: the others are dropped before the end of the last layer.
    std::vector<int> rows;
    for (size_t row = 0; row < tokens.size(); ++row)
      if (row % 3 != 1 || tokens.size() < 12) rows.push_back(static_cast<int>(row));
    model_.forward({.tokens = tokens, .sequences = sequences, .logits_rows = rows});
    const auto stride = static_cast<size_t>(model_.limits().logits_stride);
    std::vector<float> flat(stride);
    for (const int row : rows) {
      model_.logits({&row, 1}, flat.data());
      out[who[static_cast<size_t>(row)]].emplace_back(flat.begin(),
                                                      flat.begin() + model_.limits().vocab_size);
    }
    return true;
  }

  Transformer& model_;
  std::vector<Member> members_;
};

void expect_same_in_company(const std::string& path, TestModelOptions options) {
  const TempFolder folder;
  options.contexts = 8;
  options.max_lora_rank = 64;
  const std::string source = tiny_data("llama-tied");
  TestModel model(path, options);
  const auto x =
      model.load_adapter(MadeLora(source, {.seed = 1, .rank = 8}).write_peft(folder.file("x")));
  const auto y = model.load_adapter(
      MadeLora(source, {.seed = 2, .rank = 33, .only = "mlp"}).write_gguf(folder.file("y.gguf")));
  const int vocab = model.transformer().limits().vocab_size;
  std::vector<Mixed::Member> members;
  for (const LoraAdapter* adapter :
       {x.get(), static_cast<const LoraAdapter*>(nullptr), y.get(), x.get(), x.get(), y.get()})
    members.push_back(
        {random_tokens(30 + 7 * members.size(), vocab, static_cast<unsigned>(members.size() % 4)),
         adapter});
  std::vector<Rows> alone;
  for (const Mixed::Member& member : members) {
    TestModel own(path, options);
    own.use_adapter({std::shared_ptr<const LoraAdapter>(), member.adapter});
    alone.push_back(own.logits(member.tokens, positions_of(member.tokens)));
  }
  // Members 0 and 1 differ in the adapter, 0 and 4 in nothing but the length.
  EXPECT_GT(largest_difference({alone[0][20]}, {alone[1][20]}), 0.01);
  EXPECT_TRUE(same_bits({alone[0][20]}, {alone[4][20]}));
  for (const std::vector<int>& chunks :
       {std::vector<int>{1}, {100}, {0, 7, 3}, {1, 1, 40}, {0, 2, 0, 0, 9}}) {
    TestModel fresh(path, options);
    const auto mixed = Mixed(fresh.transformer(), members).run(chunks);
    for (size_t i = 0; i < members.size(); ++i) {
      // Each row that was asked for is one of those computed alone.
      size_t at = 0, found = 0;
      for (const auto& row : mixed[i])
        for (; at < alone[i].size();)
          if (same_bits({row}, {alone[i][at++]})) {
            ++found;
            break;
          }
      EXPECT_EQ(found, mixed[i].size()) << path << ", member " << i;
      EXPECT_GT(mixed[i].size(), 15u);
    }
  }
}

TEST(Lora, IsTheSameWhateverTheCompany) {
  const std::string gguf = tiny_data("llama-tied/llama-tied-");
  for (const int threads : {1, 2, 5}) {
    expect_same_in_company(gguf + "Q4_0.gguf", {.threads = threads});
    expect_same_in_company(gguf + "F32.gguf", {.threads = threads});
  }
  expect_same_in_company(tiny_data("llama-tied"), {.dtype = ComputeType::float32});
}

TEST(Lora, IsTheSameForAnyChunkThreadsAndRecording) {
  const TempFolder folder;
  const std::string path = tiny_data("llama-tied/llama-tied-Q8_0.gguf");
  const MadeLora made(tiny_data("llama-tied"), {.rank = 20});
  const std::string file = made.write_gguf(folder.file("a.gguf"));
  std::optional<Rows> expected;
  for (const int chunk : {512, 1, 7, 64})
    for (const int threads : {1, 3})
      for (const bool reuse : {true, false}) {
        TestModel model(
            path, {.threads = threads, .chunk = chunk, .reuse_steps = reuse, .max_lora_rank = 20});
        const auto tokens = random_tokens(100, model.transformer().limits().vocab_size, 5);
        model.use_adapter(model.load_adapter(file));
        const Rows rows = model.logits(tokens, positions_of(tokens));
        if (!expected) expected = rows;
        EXPECT_TRUE(same_bits(rows, *expected)) << chunk << ", " << threads << ", " << reuse;
      }
}

}  // namespace
}  // namespace octavo
