// A decode step allocates nothing once it has been seen: memory is taken when an engine starts,
// when a request starts and at the first step of a shape.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "sampling/sampler.h"
#include "support/lora_files.h"
#include "support/paths.h"
#include "support/temp_folder.h"
#include "support/test_model.h"

namespace {

std::atomic<int64_t> allocations{0};

void* counted(size_t bytes, size_t alignment = alignof(std::max_align_t)) {
  ++allocations;
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return counted(bytes); }
void* operator new[](size_t bytes) { return counted(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace octavo {
namespace {

using namespace testing;

// Sequences that draw their next tokens themselves, as the engine does it, after positions that
// all of them hold in the same blocks.
class Decoding {
 public:
  // adapter: of every other sequence.
  Decoding(Transformer& model, BlockPool& pool, size_t count, int shared, int room,
           const LoraAdapter* adapter = nullptr)
      : model_(model),
        adapter_(adapter),
        shared_(shared),
        sampler_(model.limits().vocab_size),
        logits_(count * static_cast<size_t>(model.limits().logits_stride)) {
    params_.temperature = 1;
    params_.top_k = 20;
    params_.repetition_penalty = 1.1;
    tokens_.reserve(count);
    sequences_.reserve(count);
    BlockTable prefix(pool);
    EXPECT_TRUE(prefix.reserve(shared));
    for (size_t i = 0; i < count; ++i) {
      tables_.push_back(prefix.fork());
      tables_.back().make_room(shared + room);
      answers_.emplace_back();
      answers_.back().reserve(static_cast<size_t>(room));
      answers_.back().push_back(TokenId{static_cast<int>(i) + 1});
      rows_.push_back(static_cast<int>(i));
    }
  }

  void step() {
    tokens_.clear();
    sequences_.clear();
    for (size_t i = 0; i < tables_.size(); ++i) {
      const auto position = shared_ + static_cast<int>(answers_[i].size()) - 1;
      ASSERT_TRUE(tables_[i].reserve(position + 1));
      tokens_.push_back(answers_[i].back());
      sequences_.push_back({static_cast<int>(i), 1, position, tables_[i].block_ids(),
                            i % 2 == 0 ? adapter_ : nullptr});
    }
    model_.forward({.tokens = tokens_, .sequences = sequences_, .logits_rows = rows_});
    model_.logits(rows_, logits_.data());
    for (size_t i = 0; i < tables_.size(); ++i) draw(i);
  }

 private:
  void draw(size_t i) {
    const SampleRequest request{.params = params_,
                                .seed = 7,
                                .choice = static_cast<uint32_t>(i),
                                .history = {{}, answers_[i]},
                                .eog = {}};
    const auto stride = static_cast<size_t>(model_.limits().logits_stride);
    const auto sample = sampler_.sample(std::span(logits_).subspan(i * stride, stride), request);
    ASSERT_TRUE(sample);
    answers_[i].push_back(sample->token);
  }

  Transformer& model_;
  const LoraAdapter* adapter_;
  int shared_;
  Sampler sampler_;
  SamplingParams params_;
  std::vector<BlockTable> tables_;
  std::vector<std::vector<TokenId>> answers_;
  std::vector<TokenId> tokens_;
  std::vector<BatchSequence> sequences_;
  std::vector<int> rows_;
  std::vector<float> logits_;
};

TEST(SteadyState, StepsAllocateNothing) {
  for (const bool reuse : {true, false})
    for (const size_t count : {size_t{1}, size_t{8}})
      for (const int shared : {0, 512}) {
        TestModel model(
            test_data("tiny/llama-rope3/llama-rope3-Q4_0.gguf"),
            {.block_size = 16, .contexts = 8, .context_length = 1024, .reuse_steps = reuse});
        const auto pool = *BlockPool::create(model.transformer().limits().num_blocks, 16);
        const int steps = 200;  // over many blocks
        Decoding decoding(model.transformer(), *pool, count, shared, steps + 1);
        decoding.step();
        const int64_t before = allocations;
        for (int i = 1; i < steps; ++i) decoding.step();
        EXPECT_EQ(allocations - before, 0)
            << count << " sequences, " << shared << " positions shared, reuse " << reuse;
      }
}

TEST(SteadyState, StepsWithAdaptersAllocateNothing) {
  const TempFolder folder;
  const std::string path =
      MadeLora(tiny_data("llama-tied"), {.rank = 16}).write_peft(folder.file("adapter"));
  for (const bool reuse : {true, false}) {
    TestModel model(tiny_data("llama-tied/llama-tied-Q4_0.gguf"),
                    {.block_size = 16, .contexts = 8, .reuse_steps = reuse, .max_lora_rank = 16});
    const auto adapter = model.load_adapter(path);
    const auto pool = *BlockPool::create(model.transformer().limits().num_blocks, 16);
    Decoding decoding(model.transformer(), *pool, 5, 0, 61, adapter.get());
    decoding.step();
    const int64_t before = allocations;
    for (int i = 1; i < 60; ++i) decoding.step();
    EXPECT_EQ(allocations - before, 0) << "reuse " << reuse;
  }
}

}  // namespace
}  // namespace octavo
