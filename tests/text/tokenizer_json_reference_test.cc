// Small tokenizer.json files of every kind against Hugging Face's `tokenizers`: the same ids for
// hard texts, and the same text for the ids. tools/make_tokenizer_data.py makes the expected
// values.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/tokenizer_json.h"
#include "support/paths.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr const char* kKinds[] = {
    "wordpiece_uncased", "wordpiece_cased_added", "unigram_t5",          "unigram_nfkc_first",
    "unigram_albert",    "unigram_bytes_added",   "bpe_roberta",         "bpe_llama3",
    "bpe_nfc_added",     "bpe_behaviors",         "bpe_llama2_added",    "bpe_gemma",
    "bpe_affixes",       "bpe_unknown",           "bpe_byte_normalizer", "word_level",
};

json read_json(const std::string& name) {
  return json::parse(testing::read_file(testing::test_data("tokenizer_json/" + name + ".json")));
}

std::vector<int32_t> numbers(const std::vector<TokenId>& ids) {
  std::vector<int32_t> out;
  for (const TokenId id : ids) out.push_back(raw(id));
  return out;
}

class TokenizerKind : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    data_ = read_json(GetParam());
    texts_ = read_json("texts").get<std::vector<std::string>>();
    auto spec = parse_tokenizer_json(data_["tokenizer"].dump(), GetParam());
    ASSERT_TRUE(spec) << spec.error().message;
    auto created = Tokenizer::create(std::move(*spec));
    ASSERT_TRUE(created) << created.error().message;
    tokenizer_.emplace(std::move(*created));
  }

  std::vector<TokenId> encode(const std::string& text, Tokenizer::EncodeOptions options) const {
    const auto ids = tokenizer_->encode(text, options);
    EXPECT_TRUE(ids) << ids.error().message;
    return ids ? *ids : std::vector<TokenId>();
  }

  json data_;
  std::vector<std::string> texts_;
  std::optional<Tokenizer> tokenizer_;
};

TEST_P(TokenizerKind, EncodesAsTheReference) {
  ASSERT_GE(texts_.size(), 60u);
  for (size_t i = 0; i < texts_.size(); ++i)
    EXPECT_EQ(numbers(encode(texts_[i], {.parse_special = true})),
              data_["plain"][i][0].get<std::vector<int32_t>>())
        << texts_[i];
}

TEST_P(TokenizerKind, DecodesAsTheReference) {
  for (size_t i = 0; i < texts_.size(); ++i) {
    const auto ids = encode(texts_[i], {.parse_special = true});
    EXPECT_EQ(tokenizer_->decode(ids, /*skip_special=*/true, SpacePrefix::strip),
              data_["plain"][i][1].get<std::string>())
        << texts_[i];
  }
}

// A text that already begins or ends with the added token gets no second one, unlike there.
TEST_P(TokenizerKind, AddsTokensAroundAsTheReference) {
  for (size_t i = 0; i < texts_.size(); ++i) {
    const auto plain = encode(texts_[i], {.parse_special = true});
    const auto ids = encode(texts_[i], {.parse_special = true, .add_special = true});
    const bool begun = !plain.empty() && plain.front() == tokenizer_->bos();
    const bool ended = !plain.empty() && plain.back() == tokenizer_->eos();
    if (begun || ended) {
      EXPECT_LE(ids.size(), plain.size() + 1) << texts_[i];
      continue;
    }
    EXPECT_EQ(numbers(ids), data_["special"][i][0].get<std::vector<int32_t>>()) << texts_[i];
    EXPECT_EQ(tokenizer_->decode(ids, /*skip_special=*/false, SpacePrefix::strip),
              data_["special"][i][1].get<std::string>())
        << texts_[i];
  }
}

TEST_P(TokenizerKind, StreamsWhatItDecodes) {
  for (const std::string& text : texts_) {
    const auto ids = encode(text, {.parse_special = true});
    for (const SpacePrefix prefix : {SpacePrefix::keep, SpacePrefix::strip}) {
      Detokenizer detokenizer(*tokenizer_, /*skip_special=*/false, prefix);
      std::string streamed;
      for (const TokenId id : ids) streamed += detokenizer.push(id);
      EXPECT_EQ(streamed + detokenizer.finish(), tokenizer_->decode(ids, false, prefix)) << text;
    }
  }
}

// Control tokens that a user spells out are ordinary text, whatever the model makes of it.
TEST_P(TokenizerKind, UsersTextIsNeverAControlToken) {
  const std::optional<TokenId> unknown = [&]() -> std::optional<TokenId> {
    const auto id = tokenizer_->find_control("[UNK]");
    return id ? id : tokenizer_->find_control("<unk>");
  }();
  for (const std::string& text : texts_)
    for (const TokenId id : encode(text, {}))
      EXPECT_TRUE(!tokenizer_->is_control(id) || id == unknown) << text << " " << raw(id);
}

// In a chat only the template's own spelling counts, also at the border of a user's text.
TEST_P(TokenizerKind, OnlyTemplateTextHoldsControlTokens) {
  const char* spelling = tokenizer_->find_control("[CLS]") ? "[CLS]" : "<s>";
  const auto control = tokenizer_->find_control(spelling);
  if (!control) return;  // a kind without one
  const std::string half = std::string(spelling).substr(0, 2);
  const TextSpan spans[] = {{spelling, true},
                            {std::string("a ") + spelling + " " + half, false},
                            {std::string(spelling).substr(2) + " " + spelling, true}};
  const auto ids = tokenizer_->encode(spans);
  ASSERT_TRUE(ids) << ids.error().message;
  EXPECT_EQ(std::count(ids->begin(), ids->end(), *control), 2);
}

// Work grows with the text, not with its square; and the stack does not grow at all.
TEST_P(TokenizerKind, LongRunsTakeLinearWorkAndLittleStack) {
  struct Job {
    const Tokenizer* tokenizer;
    std::string failure;
  } job{&*tokenizer_, {}};
  const auto work = [](void* argument) -> void* {
    auto& self = *static_cast<Job*>(argument);
    for (const char* unit : {"a", "A", ".", " ", "\u00E9", "\u4E2D", "\n", "ab", "the", "1"}) {
      uint64_t steps[2] = {};
      for (const size_t times : {size_t{4096}, size_t{32768}}) {
        std::string text;
        for (size_t i = 0; i < times; ++i) text += unit;
        EncodeStats stats;
        if (const auto ids = self.tokenizer->encode(text, {}, stats); !ids)
          self.failure = ids.error().message;
        steps[times > 4096] = stats.lookups + stats.heap_steps;
      }
      if (steps[1] > 10 * steps[0] + 1000) self.failure = std::string("square: ") + unit;
    }
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 * 1024);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, work, &job), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(job.failure, "");
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerKind, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param); });

// Every value of every kind replaced by one of another type: an error or a tokenizer that works.
TEST(TokenizerKinds, SurviveWrongValues) {
  const json values[] = {nullptr, true, -1, 1e300, "", "ab", json::array(), json::object()};
  for (const char* kind : kKinds) {
    json original = read_json(kind)["tokenizer"];
    // Of the long lists a few entries do.
    json small = original;
    small["model"]["vocab"] = nullptr;
    if (small["model"].contains("merges")) small["model"]["merges"] = nullptr;
    const json flat = small.flatten();
    for (const auto& [place, unused] : flat.items()) {
      for (const json& value : values) {
        json changed = original;
        changed[json::json_pointer(place)] = value;
        auto spec = parse_tokenizer_json(changed.dump(), "t.json");
        if (!spec) continue;
        if (const auto tokenizer = Tokenizer::create(std::move(*spec)))
          static_cast<void>(tokenizer->encode("Aab <s> \u00E9", {.parse_special = true}));
      }
    }
  }
}

}  // namespace
}  // namespace octavo
