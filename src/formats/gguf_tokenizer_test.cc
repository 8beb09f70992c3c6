#include "formats/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "support/gguf_writer.h"
#include "support/paths.h"
#include "text/tokenizer.h"

namespace octavo {
namespace {

using testing::as_bytes;
using testing::GgufWriter;

// Three tokens of a kind that needs nothing else.
GgufWriter minimal() {
  return GgufWriter()
      .string("tokenizer.ggml.model", "other")
      .strings("tokenizer.ggml.tokens", {"a", "b", "ab"});
}

Result<TokenizerSpec> read(const GgufWriter& writer) {
  const std::string bytes = writer.build();
  const auto file = GgufFile::parse(as_bytes(bytes), "model.gguf");
  if (!file) return tl::unexpected<Error>(file.error());
  return read_tokenizer_spec(*file);
}

TEST(GgufTokenizer, AbsentKeysStayUnset) {
  const auto spec = read(minimal());
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->model, "other");
  EXPECT_EQ(spec->pre, "");
  EXPECT_EQ(spec->tokens.size(), 3u);
  EXPECT_EQ(spec->tokens[2], "ab");
  EXPECT_TRUE(spec->scores.empty() && spec->types.empty() && spec->merges.empty());
  EXPECT_FALSE(spec->bos || spec->eos || spec->eot || spec->unknown || spec->padding);
  EXPECT_FALSE(spec->add_bos || spec->add_eos || spec->add_space_prefix);
  EXPECT_TRUE(spec->extra_eog.empty());
  EXPECT_EQ(spec->chat_template, "");
}

GgufWriter bert() {
  return GgufWriter()
      .string("tokenizer.ggml.model", "bert")
      .strings("tokenizer.ggml.tokens",
               {"[UNK]", "[CLS]", "[SEP]", "\xE2\x96\x81play", "ing", "\xE2\x96\x81.", "s"})
      .array<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 3, 1, 1, 1, 1})
      .u32("tokenizer.ggml.cls_token_id", 1)
      .u32("tokenizer.ggml.seperator_token_id", 2);
}

TEST(GgufTokenizer, WordPieceIsSpelledInItsOwnWay) {
  const auto encode = [](const GgufWriter& writer, std::string_view text) {
    auto spec = read(writer);
    EXPECT_TRUE(spec) << spec.error().message;
    const auto tokenizer = Tokenizer::create(std::move(*spec));
    EXPECT_TRUE(tokenizer) << tokenizer.error().message;
    std::vector<int> ids;
    const auto encoded = tokenizer->encode(text, {.add_special = true});
    for (const TokenId id : *encoded) ids.push_back(raw(id));
    return ids;
  };
  const auto with_unknown = [] { return bert().u32("tokenizer.ggml.unknown_token_id", 0); };
  EXPECT_EQ(encode(with_unknown(), "Playing plays."), (std::vector{1, 3, 4, 3, 6, 5, 2}));
  EXPECT_EQ(encode(with_unknown(), "ing xyz"), (std::vector{1, 0, 0, 2}));
  EXPECT_EQ(
      encode(with_unknown().boolean("tokenizer.ggml.normalizer.lowercase", false), "Play play"),
      (std::vector{1, 0, 3, 2}));
  // No control token comes out of text.
  EXPECT_EQ(encode(with_unknown(), "[CLS]"), (std::vector{1, 0, 0, 0, 2}));
  const auto without = read(bert());
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().message.find("unknown_token_id"), std::string::npos);
}

TEST(GgufTokenizer, ReadsEveryKey) {
  const auto spec = read(minimal()
                             .string("tokenizer.ggml.pre", "qwen2")
                             .array<float>("tokenizer.ggml.scores", GgufType::f32, {0, -1, -2.5f})
                             .array<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {1, 3, 6})
                             .strings("tokenizer.ggml.merges", {"a b"})
                             .u32("tokenizer.ggml.bos_token_id", 0)
                             .u32("tokenizer.ggml.eos_token_id", 1)
                             .u32("tokenizer.ggml.eot_token_id", 2)
                             .u32("tokenizer.ggml.eom_token_id", 1)
                             .u32("tokenizer.ggml.unknown_token_id", 0)
                             .u32("tokenizer.ggml.padding_token_id", 2)
                             .boolean("tokenizer.ggml.add_bos_token", true)
                             .boolean("tokenizer.ggml.add_eos_token", false)
                             .boolean("tokenizer.ggml.add_space_prefix", false)
                             .string("tokenizer.chat_template", "{{ x }}"));
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->pre, "qwen2");
  EXPECT_EQ(spec->scores, (std::vector<float>{0, -1, -2.5f}));
  EXPECT_EQ(spec->types, (std::vector{TokenType::normal, TokenType::control, TokenType::byte}));
  EXPECT_EQ(spec->merges[0], "a b");
  EXPECT_EQ(spec->bos, TokenId{0});
  EXPECT_EQ(spec->eos, TokenId{1});
  EXPECT_EQ(spec->eot, TokenId{2});
  EXPECT_EQ(spec->unknown, TokenId{0});
  EXPECT_EQ(spec->padding, TokenId{2});
  EXPECT_EQ(spec->extra_eog, std::vector{TokenId{1}});
  EXPECT_EQ(spec->add_bos, true);
  EXPECT_EQ(spec->add_eos, false);
  EXPECT_EQ(spec->add_space_prefix, false);
  EXPECT_EQ(spec->chat_template, "{{ x }}");
}

TEST(GgufTokenizer, RefusalsNameTheKey) {
  const std::vector<float> two_scores = {0, 1};
  const struct {
    GgufWriter file;
    const char* says;
  } cases[] = {
      {GgufWriter().strings("tokenizer.ggml.tokens", {"a"}), "'tokenizer.ggml.model' is missing"},
      {GgufWriter().string("tokenizer.ggml.model", "gpt2"), "'tokenizer.ggml.tokens' is missing"},
      {GgufWriter().string("tokenizer.ggml.model", "gpt2").strings("tokenizer.ggml.tokens", {}),
       "'tokenizer.ggml.tokens' at byte"},
      {GgufWriter().u32("tokenizer.ggml.model", 1), "'tokenizer.ggml.model' at byte"},
      {minimal().array("tokenizer.ggml.scores", GgufType::f32, two_scores),
       "has 2 elements, but 'tokenizer.ggml.tokens' has 3"},
      {minimal().array<int32_t>("tokenizer.ggml.scores", GgufType::i32, {1, 2, 3}),
       "'tokenizer.ggml.scores' at byte"},
      {minimal().array<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {1, 1, 1, 1}),
       "has 4 elements"},
      {minimal().array<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {1, 7, 1}),
       "gives token 1 the unknown type 7"},
      {minimal().array<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {0, 1, 1}),
       "gives token 0 the unknown type 0"},
      {minimal().u32("tokenizer.ggml.merges", 1), "'tokenizer.ggml.merges' at byte"},
      {minimal().u32("tokenizer.ggml.bos_token_id", 3),
       "'tokenizer.ggml.bos_token_id' at byte 181 is 3, but the vocabulary has 3 tokens"},
      {minimal().u32("tokenizer.ggml.eos_token_id", 0xfffffffe), "is 4294967294"},
      {minimal().string("tokenizer.ggml.eos_token_id", "2"),
       "'tokenizer.ggml.eos_token_id' at byte"},
      {minimal().u32("tokenizer.ggml.add_bos_token", 1), "'tokenizer.ggml.add_bos_token' at byte"},
      {minimal().u32("tokenizer.chat_template", 1), "'tokenizer.chat_template' at byte"},
  };
  for (const auto& c : cases) {
    const auto spec = read(c.file);
    ASSERT_FALSE(spec) << c.says;
    EXPECT_NE(spec.error().message.find(c.says), std::string::npos) << spec.error().message;
    EXPECT_EQ(spec.error().message.rfind("model.gguf: ", 0), 0u) << spec.error().message;
  }
}

TEST(GgufTokenizer, EachKindNeedsItsKeys) {
  const struct {
    const char* model;
    std::vector<std::string> keys;
  } kinds[] = {{"gpt2", {"merges", "token_type"}},
               {"llama", {"scores", "token_type"}},
               {"bert", {"token_type"}}};
  for (const auto& kind : kinds)
    for (const std::string& left_out : kind.keys) {
      GgufWriter file = GgufWriter()
                            .string("tokenizer.ggml.model", kind.model)
                            .strings("tokenizer.ggml.tokens", {"a", "b", "ab"});
      if (left_out != "merges") file.strings("tokenizer.ggml.merges", {"a b"});
      if (left_out != "scores")
        file.array<float>("tokenizer.ggml.scores", GgufType::f32, {0, 0, 0});
      if (left_out != "token_type")
        file.array<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {1, 1, 1});
      const auto spec = read(file);
      ASSERT_FALSE(spec) << kind.model << " without " << left_out;
      EXPECT_EQ(spec.error().code, ErrorCode::corrupt_file);
      EXPECT_EQ(spec.error().message, "model.gguf: metadata key 'tokenizer.ggml." + left_out +
                                          "' is missing, which a tokenizer of the kind '" +
                                          kind.model + "' needs; convert the model again");
    }
}

TEST(GgufTokenizer, MinusOneIsNoToken) {
  for (const char* which : {"bos", "eos", "eot", "eom", "unknown", "padding"}) {
    const std::string key = "tokenizer.ggml." + std::string(which) + "_token_id";
    for (const GgufWriter& file :
         {minimal().u32(key, UINT32_MAX), minimal().value<int32_t>(key, GgufType::i32, -1),
          minimal().value<uint64_t>(key, GgufType::u64, UINT64_MAX)}) {
      const auto spec = read(file);
      ASSERT_TRUE(spec) << spec.error().message;
      EXPECT_FALSE(spec->bos || spec->eos || spec->eot || spec->unknown || spec->padding);
      EXPECT_TRUE(spec->extra_eog.empty() && spec->notes.empty());
      EXPECT_EQ(spec->add_bos, std::string(which) == "bos" ? std::optional(false) : std::nullopt);
    }
  }
}

TEST(GgufTokenizer, APaddingTokenThatCannotBeIsNotedOnly) {
  const auto spec = read(minimal().u32("tokenizer.ggml.padding_token_id", 3));
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_FALSE(spec->padding);
  ASSERT_EQ(spec->notes.size(), 1u);
  EXPECT_NE(spec->notes[0].find("'tokenizer.ggml.padding_token_id'"), std::string::npos);
}

TEST(GgufTokenizer, TemplatesWithNames) {
  const auto spec = read(minimal()
                             .string("tokenizer.chat_template", "plain")
                             .strings("tokenizer.chat_templates", {"tool_use", "rag"})
                             .string("tokenizer.chat_template.tool_use", "with tools")
                             .string("tokenizer.chat_template.rag", "with documents"));
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->chat_template, "plain");
  EXPECT_EQ(spec->tool_template, "with tools");
  EXPECT_EQ(spec->template_names, (std::vector<std::string>{"tool_use", "rag"}));
}

TEST(GgufTokenizer, SmolLm2) {
  const auto file = GgufFile::open(testing::smollm2_path());
  ASSERT_TRUE(file) << file.error().message;
  const auto spec = read_tokenizer_spec(*file);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->model, "gpt2");
  EXPECT_EQ(spec->pre, "smollm");
  ASSERT_EQ(spec->tokens.size(), 49152u);
  EXPECT_EQ(spec->tokens[0], "<|endoftext|>");
  EXPECT_EQ(spec->tokens[1], "<|im_start|>");
  EXPECT_EQ(spec->types.size(), 49152u);
  EXPECT_EQ(spec->types[1], TokenType::control);
  EXPECT_EQ(spec->merges.size(), 48900u);
  EXPECT_TRUE(spec->scores.empty());
  EXPECT_EQ(spec->bos, TokenId{1});
  EXPECT_EQ(spec->eos, TokenId{2});
  EXPECT_EQ(spec->add_bos, false);
  EXPECT_EQ(spec->chat_template,
            testing::read_file(testing::test_data("chat_templates/smollm2.chat_template.jinja")));
}

TEST(GgufTokenizer, Gemma3VocabularyHasScores) {
  const auto file = GgufFile::open(testing::unpacked("gemma3-vocab.gguf"));
  ASSERT_TRUE(file) << file.error().message;
  const auto spec = read_tokenizer_spec(*file);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->model, "llama");
  EXPECT_EQ(spec->tokens.size(), 262144u);
  EXPECT_EQ(spec->scores.size(), 262144u);
  EXPECT_EQ(spec->types.size(), 262144u);
  EXPECT_TRUE(spec->merges.empty());
  EXPECT_EQ(spec->tokens[2], "<bos>");
  EXPECT_EQ(spec->bos, TokenId{2});
}

}  // namespace
}  // namespace octavo
