#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

using testing::add_token;
using testing::tiny_byte_spec;
using testing::tiny_piece_spec;

Tokenizer make(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::create(std::move(spec));
  if (!tokenizer) throw std::runtime_error(tokenizer.error().message);
  return std::move(*tokenizer);
}

// The pieces of an encoding, separated by "|": easier to read than ids.
std::string pieces(const Tokenizer& tokenizer, const Result<std::vector<TokenId>>& ids) {
  if (!ids) return "error: " + ids.error().message;
  std::string out;
  for (const TokenId id : *ids) out += (out.empty() ? "" : "|") + tokenizer.piece(id);
  return out;
}

std::string encode(const Tokenizer& tokenizer, std::string_view text,
                   Tokenizer::EncodeOptions options = {}) {
  return pieces(tokenizer, tokenizer.encode(text, options));
}

TEST(Tokenizer, ByteLevelMerges) {
  const Tokenizer tokenizer = make(tiny_byte_spec());
  EXPECT_EQ(encode(tokenizer, ""), "");
  EXPECT_EQ(encode(tokenizer, "hello world"), "hello| w|o|r|l|d");
  EXPECT_EQ(encode(tokenizer, "hellhe"), "hell|he");
  EXPECT_EQ(encode(tokenizer, "1212"), "12|12");
  EXPECT_EQ(encode(make(tiny_byte_spec("smollm")), "1212"),
            "1|2|1|2");  // digits are words of their own
  EXPECT_EQ(encode(tokenizer, "a<think>hello"),
            "a|<think>|hello");  // also when nothing special is parsed
  const auto accent = tokenizer.encode("é", {});
  EXPECT_EQ(*accent, (std::vector<TokenId>{TokenId{0xC3}, TokenId{0xA9}}));
}

TEST(Tokenizer, WholeWordsComeBeforeMergesWhereTheFamilyDoesSo) {
  const auto with_word = [](const std::string& pre) {
    TokenizerSpec spec = tiny_byte_spec(pre);
    add_token(spec, "hex", TokenType::normal);  // no merge leads to it
    spec.scores.clear();
    return make(std::move(spec));
  };
  EXPECT_EQ(encode(with_word("gpt2"), "hex"), "he|x");
  EXPECT_EQ(encode(with_word("llama-bpe"), "hex"), "hex");
}

TEST(Tokenizer, BytesWithoutATokenAreLeftOutAndCounted) {
  TokenizerSpec spec;
  spec.model = "gpt2";
  spec.pre = "gpt2";
  add_token(spec, "a", TokenType::normal);
  spec.scores.clear();
  const Tokenizer tokenizer = make(std::move(spec));
  EncodeStats stats;
  EXPECT_EQ(pieces(tokenizer, tokenizer.encode("a\x04"
                                               "a",
                                               {}, stats)),
            "a|a");
  EXPECT_EQ(stats.dropped_bytes, 1u);
}

TEST(Tokenizer, EndsWhenNobodyWantsTheTokens) {
  TokenizerSpec spec;
  spec.model = "gpt2";
  spec.pre = "gpt2";
  add_token(spec, "a", TokenType::normal);
  spec.scores.clear();
  const Tokenizer bytes = make(std::move(spec));
  const Tokenizer pieces = make(tiny_piece_spec({"a", "▁a"}));
  std::stop_source stop;
  const std::vector<TextSpan> spans = {{"a a", true}, {"a", false}};
  for (const Tokenizer* tokenizer : {&bytes, &pieces}) {
    EXPECT_TRUE(tokenizer->encode("a a", {.stop = std::stop_source().get_token()}));
    stop.request_stop();
    const auto text = tokenizer->encode("a a", {.stop = stop.get_token()});
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code, ErrorCode::cancelled);
    EXPECT_FALSE(tokenizer->encode(spans, false, stop.get_token()));
  }
}

TEST(Tokenizer, SentencePieceJoinsByScoreThenPosition) {
  const auto with = [](bool prefix) {
    TokenizerSpec spec = tiny_piece_spec({"bc", "ab", "aa", "▁a", "a", "b", "c", "▁"});
    spec.add_space_prefix = prefix;
    return make(std::move(spec));
  };
  const Tokenizer plain = with(false);
  EXPECT_EQ(encode(plain, "abc"), "a|bc");
  EXPECT_EQ(encode(plain, "aaa"), "aa|a");
  EXPECT_EQ(encode(plain, "a ab"), "a| |ab");
  EXPECT_EQ(encode(plain, "c ac"), "c| a|c");
  EXPECT_EQ(encode(plain, "▁a"), " a");  // a U+2581 in the text is a space
  const Tokenizer prefixed = with(true);
  EXPECT_EQ(encode(prefixed, ""), "");
  EXPECT_EQ(encode(prefixed, "ac"), " a|c");
  EXPECT_EQ(encode(prefixed, "<eos>ac", {.parse_special = true}), "<eos>| a|c");
}

// "b▁a" may only be found if the text is not cut before that space.
TEST(Tokenizer, PiecesMaySpanWords) {
  TokenizerSpec spec = tiny_piece_spec({"b▁a", "b▁", "▁a", "a", "b", "c", "▁"});
  spec.add_space_prefix = false;
  const Tokenizer tokenizer = make(std::move(spec));
  EXPECT_EQ(encode(tokenizer, "cb a"), "c|b a");
  EXPECT_EQ(encode(tokenizer, "bc a"), "b|c| a");
}

TEST(Tokenizer, UserDefinedPiecesNeverMerge) {
  TokenizerSpec spec = tiny_piece_spec({"a▁", "▁▁▁", "▁", "a", "<b>a"});
  spec.add_space_prefix = false;
  add_token(spec, "▁▁", TokenType::user_defined);
  add_token(spec, "<b>", TokenType::user_defined);
  add_token(spec, "<b><i>", TokenType::user_defined);
  const Tokenizer tokenizer = make(std::move(spec));
  EXPECT_EQ(encode(tokenizer, "a   a"), "a|  | |a");
  EXPECT_EQ(encode(tokenizer, "<b>a<b><i>a"), "<b>|a|<b><i>|a");
}

TEST(Tokenizer, CharactersWithoutAPiece) {
  TokenizerSpec bytes = tiny_piece_spec({"a"});
  bytes.add_space_prefix = false;
  const auto ids = make(std::move(bytes)).encode("aé", {});
  EXPECT_EQ(*ids, (std::vector<TokenId>{TokenId{259}, TokenId{0xC3 + 3}, TokenId{0xA9 + 3}}));
  TokenizerSpec none = tiny_piece_spec({"a"}, /*byte_tokens=*/false);
  none.add_space_prefix = false;
  EXPECT_EQ(encode(make(std::move(none)), "éxa中"), "<unk>|a|<unk>");
}

// An unused piece may be a step on the way to a longer one, but never stays.
TEST(Tokenizer, UnusedPiecesAreTakenApart) {
  TokenizerSpec spec = tiny_piece_spec({"a", "b", "c"});
  spec.add_space_prefix = false;
  add_token(spec, "ab", TokenType::unused, -1);
  add_token(spec, "abab", TokenType::unused, -1);
  add_token(spec, "abc", TokenType::normal, -2);
  const Tokenizer tokenizer = make(std::move(spec));
  EXPECT_EQ(encode(tokenizer, "abc"), "abc");
  EXPECT_EQ(encode(tokenizer, "abab"), "a|b|a|b");
}

TEST(Tokenizer, ControlTokensOnlyWhereAsked) {
  for (const bool byte_level : {true, false}) {
    TokenizerSpec spec = byte_level ? tiny_byte_spec() : tiny_piece_spec({"a"});
    spec.add_space_prefix = false;
    const Tokenizer tokenizer = make(std::move(spec));
    const auto plain = tokenizer.encode("a<eos>a", {});
    for (const TokenId id : *plain) EXPECT_FALSE(tokenizer.is_control(id));
    EXPECT_EQ(tokenizer.decode(*plain, true), "a<eos>a");
    EXPECT_EQ(encode(tokenizer, "a<eos>a", {.parse_special = true}), "a|<eos>|a");
    EXPECT_EQ(encode(tokenizer, "<eos><bos>", {.parse_special = true}), "<eos>|<bos>");
  }
}

TEST(Tokenizer, EndTokensAreControlWhateverTheirType) {
  TokenizerSpec spec = tiny_byte_spec();
  spec.eot = add_token(spec, "<|end|>", TokenType::user_defined);
  spec.extra_eog = {add_token(spec, "<|stop|>", TokenType::normal)};
  spec.scores.clear();
  const Tokenizer tokenizer = make(std::move(spec));
  EXPECT_EQ(encode(tokenizer, "<|end|>"), "<|||e|n|d|||>");
  EXPECT_TRUE(tokenizer.is_control(*tokenizer.find_control("<|stop|>")));
  EXPECT_EQ(tokenizer.eog().size(), 3u);
  for (const TokenId id : tokenizer.eog()) EXPECT_TRUE(tokenizer.is_eog(id));
  EXPECT_FALSE(tokenizer.is_eog(*tokenizer.bos()));
}

TEST(Tokenizer, AddsBosAndEosByTheFilesRules) {
  const auto with = [](TokenizerSpec spec, std::optional<bool> bos, std::optional<bool> eos) {
    spec.add_bos = bos;
    spec.add_eos = eos;
    return make(std::move(spec));
  };
  const Tokenizer::EncodeOptions add{.add_special = true},
      both{.parse_special = true, .add_special = true};
  EXPECT_EQ(encode(with(tiny_byte_spec(), {}, {}), "a", add), "a");
  EXPECT_EQ(encode(with(tiny_byte_spec("llama-bpe"), {}, {}), "a", add), "<bos>|a");
  EXPECT_EQ(encode(with(tiny_piece_spec({"a", "▁a"}), {}, {}), "a", add), "<bos>| a");
  EXPECT_EQ(encode(with(tiny_piece_spec({"a", "▁a"}), false, true), "a", add), " a|<eos>");
  const Tokenizer tokenizer = with(tiny_byte_spec(), true, true);
  EXPECT_EQ(encode(tokenizer, "", add), "<bos>|<eos>");
  EXPECT_EQ(encode(tokenizer, "a"), "a");
  EXPECT_EQ(encode(tokenizer, "<bos>a<eos>", both), "<bos>|a|<eos>");
  EXPECT_EQ(encode(tokenizer, "<bos><bos>", both), "<bos>|<bos>|<eos>");
  EXPECT_EQ(encode(tokenizer, "<bos>", add), "<bos>|<|b|o|s|>|<eos>");
}

TEST(Tokenizer, SpansMarkWhereControlTokensMayBe) {
  const Tokenizer tokenizer = make(tiny_byte_spec());
  const auto spans = [&](std::vector<TextSpan> list) {
    return pieces(tokenizer, tokenizer.encode(list));
  };
  EXPECT_EQ(spans({}), "");
  EXPECT_EQ(spans({{"<bos>he", true}, {"llo", false}, {"<eos>", true}}), "<bos>|hello|<eos>");
  EXPECT_EQ(spans({{"<bos>", true}, {"a<eos>", false}, {"<eos>", true}}),
            "<bos>|a|<|e|o|s|>|<eos>");
  EXPECT_EQ(spans({{"<bo", true}, {"s>", false}}), "<|b|o|s|>");
  EXPECT_EQ(spans({{"<bo", false}, {"s>", true}}), "<|b|o|s|>");
  EXPECT_EQ(spans({{"<bo", true}, {"s>", true}}), "<bos>");
  EXPECT_EQ(spans({{"a\xC3", false}, {"\xA9", true}}).substr(0, 2), "a|");
}

TEST(Tokenizer, InvalidUtf8IsRefusedWithItsOffset) {
  const Tokenizer tokenizer = make(tiny_byte_spec());
  for (const char* text : {"abc\xFF", "abc\x80", "abc\xC3(", "abc\xED\xA0\x80", "abc\xE4\xB8"}) {
    const auto ids = tokenizer.encode(text, {});
    ASSERT_FALSE(ids);
    EXPECT_EQ(ids.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(ids.error().message.find("byte 3"), std::string::npos) << ids.error().message;
  }
  EXPECT_FALSE(tokenizer.encode(std::vector<TextSpan>{{"ab", true}, {"\xC3", false}}));
}

TEST(Tokenizer, PiecesOfIdsOutsideTheVocabularyAreEmpty) {
  const Tokenizer tokenizer = make(tiny_byte_spec());
  for (const int32_t id : {-1, 265, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(tokenizer.piece(TokenId{id}), "");
    EXPECT_FALSE(tokenizer.is_control(TokenId{id}));
  }
}

TEST(Tokenizer, DecodeSkipsControlTokensAndStripsTheAddedSpace) {
  const Tokenizer tokenizer = make(tiny_piece_spec({"a", "▁a", "▁"}));
  const auto ids = tokenizer.encode("a a", {.add_special = true});
  EXPECT_EQ(tokenizer.decode(*ids, false), "<bos> a a");
  EXPECT_EQ(tokenizer.decode(*ids, true), " a a");
  EXPECT_EQ(tokenizer.decode(*ids, true, SpacePrefix::strip), "a a");
  EXPECT_EQ(tokenizer.decode(*ids, false, SpacePrefix::strip), "<bos>a a");
}

TEST(Tokenizer, RefusesSpecsThatCannotHold) {
  using Change = std::function<void(TokenizerSpec&)>;
  const struct {
    const char* message;
    TokenizerSpec spec;
    Change change;
  } cases[] = {
      {"known are 'gpt2' and 'llama'", tiny_byte_spec(), [](auto& spec) { spec.model = "bert"; }},
      {"tokenizer.ggml.model is missing", tiny_byte_spec(), [](auto& spec) { spec.model = ""; }},
      {"tokenizer.ggml.pre is missing", tiny_byte_spec(), [](auto& spec) { spec.pre = ""; }},
      {"'nonsense', which is unknown", tiny_byte_spec(), [](auto& spec) { spec.pre = "nonsense"; }},
      {"knows only 'default'", tiny_piece_spec({"a"}), [](auto& spec) { spec.pre = "qwen2"; }},
      {"no vocabulary", TokenizerSpec{}, [](auto& spec) { spec.model = "gpt2"; }},
      {"bos_token_id is 999", tiny_byte_spec(), [](auto& spec) { spec.bos = TokenId{999}; }},
      {"eos_token_id is -1", tiny_byte_spec(), [](auto& spec) { spec.eos = TokenId{-1}; }},
      {"is 265, outside", tiny_byte_spec(), [](auto& spec) { spec.extra_eog = {TokenId{265}}; }},
      {"add_bos_token is true", tiny_byte_spec(),
       [](auto& spec) { spec.bos.reset(), spec.add_bos = true; }},
      {"add_eos_token is true", tiny_byte_spec(),
       [](auto& spec) { spec.eos.reset(), spec.add_eos = true; }},
      {"add_space_prefix", tiny_byte_spec(), [](auto& spec) { spec.add_space_prefix = true; }},
      {"token_type has 264 entries", tiny_byte_spec(), [](auto& spec) { spec.types.pop_back(); }},
      {"scores has 1 entries", tiny_byte_spec(), [](auto& spec) { spec.scores = {1}; }},
      {"merges[6] 'x'", tiny_byte_spec(), [](auto& spec) { spec.merges.push_back("x"); }},
      {"merges[6] 'x '", tiny_byte_spec(), [](auto& spec) { spec.merges.push_back("x "); }},
      {"merges[6] ''", tiny_byte_spec(), [](auto& spec) { spec.merges.push_back(""); }},
      {"merges[6] 'x y'", tiny_byte_spec(), [](auto& spec) { spec.merges.push_back("x y"); }},
      {"merges[6] '<bos >'", tiny_byte_spec(),
       [](auto& spec) {
         spec.tokens.push_back("<bos"), spec.types.push_back(TokenType::normal),
             spec.merges.push_back("<bos >");
       }},
      {"tokenizer.ggml.scores is missing", tiny_piece_spec({"a"}),
       [](auto& spec) { spec.scores.clear(); }},
      {"unknown_token_id is missing", tiny_piece_spec({"a"}, false),
       [](auto& spec) { spec.unknown.reset(); }},
      {"has 1 byte tokens", tiny_piece_spec({}, false),
       [](auto& spec) { add_token(spec, "<0x0A>", TokenType::byte); }},
      {"not spelled like", tiny_piece_spec({}),
       [](auto& spec) { add_token(spec, "<0xZZ>", TokenType::byte); }},
      {"second token of that byte", tiny_piece_spec({}),
       [](auto& spec) { add_token(spec, "<0x0a>", TokenType::byte); }},
      {"not valid UTF-8", tiny_byte_spec(),
       [](auto& spec) { add_token(spec, "\x80", TokenType::control), spec.scores.clear(); }},
  };
  for (const auto& test : cases) {
    TokenizerSpec spec = test.spec;
    test.change(spec);
    const auto tokenizer = Tokenizer::create(std::move(spec));
    ASSERT_FALSE(tokenizer) << test.message;
    EXPECT_NE(tokenizer.error().message.find(test.message), std::string::npos)
        << tokenizer.error().message;
  }
}

TEST(Tokenizer, MovesAndServesManyThreads) {
  Tokenizer first = make(tiny_byte_spec());
  const Tokenizer tokenizer = std::move(first);
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "hello world 12 <think> é ";
  const auto expected = tokenizer.encode(text, {});
  std::vector<std::thread> threads;
  std::vector<int> equal(4, 0);
  for (int& mine : equal) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) mine += *tokenizer.encode(text, {}) == *expected;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(equal, (std::vector<int>{10, 10, 10, 10}));
}

}  // namespace
}  // namespace octavo
