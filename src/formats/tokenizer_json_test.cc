#include "formats/tokenizer_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/paths.h"

namespace octavo {
namespace {

using nlohmann::json;

json byte_level() {
  return {{"added_tokens",
           {{{"id", 4}, {"content", "<end>"}, {"special", true}, {"rstrip", true}},
            {{"id", 5}, {"content", "<b>"}, {"special", false}}}},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Split"},
               {"pattern", {{"Regex", R"(\p{N}{1,3})"}}},
               {"behavior", "Isolated"},
               {"invert", false}},
              {{"type", "Digits"}, {"individual_digits", true}},
              {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"aab", 3}}},
            {"merges", {"a b", json::array({"a", "ab"})}},
            {"ignore_merges", true}}}};
}

json byte_fallback() {
  return {{"added_tokens",
           {{{"id", 0}, {"content", "<unk>"}, {"special", true}},
            {{"id", 1}, {"content", "<s>"}, {"special", true}}}},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", "\u2581"}},
              {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}}},
          {"pre_tokenizer", nullptr},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single",
             {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
            {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}}},
          {"model",
           {{"type", "BPE"},
            {"byte_fallback", true},
            {"unk_token", "<unk>"},
            {"vocab",
             {{"<unk>", 0}, {"<s>", 1}, {"<0x41>", 2}, {"a", 3}, {"b", 4}, {"ab", 5}, {"aab", 6}}},
            {"merges", {"a b", "a ab"}}}}};
}

Result<TokenizerSpec> parse(const json& tokenizer) {
  return parse_tokenizer_json(tokenizer.dump(), "t.json");
}

TEST(TokenizerJson, ReadsByteLevelBpe) {
  const auto spec = parse(byte_level());
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->model, "gpt2");
  ASSERT_EQ(spec->tokens.size(), 6u);
  EXPECT_EQ(spec->tokens[3], "aab");
  EXPECT_EQ(spec->types[4], TokenType::control);
  EXPECT_EQ(spec->types[5], TokenType::user_defined);
  ASSERT_EQ(spec->merges.size(), 2u);
  EXPECT_EQ(spec->merges[1], "a ab");
  ASSERT_TRUE(spec->pre_rule);
  EXPECT_EQ(spec->pre_rule->patterns, (std::vector<std::string>{R"(\p{N}{1,3})", R"(\p{N})"}));
  EXPECT_TRUE(spec->pre_rule->nfc);
  EXPECT_TRUE(spec->pre_rule->whole_words);
  EXPECT_EQ(spec->strip_right, std::vector<TokenId>{TokenId{4}});
  EXPECT_EQ(spec->add_bos, false);
  EXPECT_EQ(find_token(*spec, "<end>"), TokenId{4});
}

TEST(TokenizerJson, ReadsBpeWithByteFallback) {
  const auto spec = parse(byte_fallback());
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->model, "llama");
  EXPECT_EQ(spec->types[2], TokenType::byte);
  EXPECT_EQ(spec->types[0], TokenType::unknown);
  EXPECT_EQ(spec->scores[5], 0);
  EXPECT_EQ(spec->scores[6], -1);
  EXPECT_EQ(spec->add_space_prefix, true);
  EXPECT_FALSE(spec->space_prefix_at_start_only);
  EXPECT_EQ(spec->unknown, TokenId{0});
  EXPECT_EQ(spec->bos, TokenId{1});
  EXPECT_EQ(spec->add_bos, true);
  EXPECT_EQ(spec->add_eos, false);
}

TEST(TokenizerJson, ReadsMetaspace) {
  json t = byte_fallback();
  t["normalizer"] = nullptr;
  t["pre_tokenizer"] = {{"type", "Metaspace"},
                        {"replacement", "\u2581"},
                        {"prepend_scheme", "first"},
                        {"split", false}};
  const auto spec = parse(t);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->add_space_prefix, true);
  EXPECT_TRUE(spec->space_prefix_at_start_only);
}

TEST(TokenizerJson, RefusesByName) {
  struct Case {
    const char* change;  // RFC 7396
    const char* message;
  };
  const Case cases[] = {
      {R"({"model":null})", "'model' is missing"},
      {R"({"model":{"type":"CharPiece"}})", "'model.type' is 'CharPiece'"},
      {R"({"model":{"type":"Unigram"}})", "'model.vocab' is missing, empty or no list"},
      {R"({"model":{"dropout":0.1}})", "'model.dropout' is set"},
      {R"({"model":{"vocab":[]}})", "'model.vocab'"},
      {R"({"model":{"vocab":{"c":-1}}})", "'model.vocab' gives 'c' no id"},
      {R"({"model":{"vocab":{"c":2}}})", "gives the id 2 to 'ab' and to 'c'"},
      {R"({"model":{"vocab":{"c":99999}}})", "far beyond the others"},
      {R"({"model":{"merges":["a"]}})", "no pair of pieces at place 0"},
      {R"({"model":{"merges":7}})", "'model.merges' is missing or no list"},
      {R"({"added_tokens":[5]})", "no object"},
      {R"({"added_tokens":[{"id":4,"content":"a"}]})", "gives 'a' the ids 0 and 4"},
      {R"({"added_tokens":[{"id":4,"content":"x","lstrip":1}]})",
       "'added_tokens.lstrip' is not true or false"},
      {R"({"model":{"merges":["b a"]}})", "'model.merges' need 'ba' at place 0"},
      {R"({"added_tokens":[{"content":"x"}]})", "'added_tokens.id' is missing"},
      {R"({"normalizer":{"type":"Nmt"}})", "'normalizer.type' is 'Nmt'"},
      {R"({"normalizer":{"type":"Sequence","normalizers":[{"type":"NFX"}]}})",
       "'normalizer.normalizers.type' is 'NFX'"},
      {R"({"normalizer":{"type":"Precompiled","precompiled_charsmap":"?"}})", "is not base64"},
      {R"({"normalizer":{"type":"Replace","pattern":{"Glob":"*"},"content":""}})",
       "'normalizer.pattern' is no Regex and no String"},
      {R"({"pre_tokenizer":{"type":"UnicodeScripts","pretokenizers":null}})",
       "'pre_tokenizer.type' is 'UnicodeScripts'"},
      {R"({"pre_tokenizer":{"type":"Metaspace","replacement":"ab","pretokenizers":null}})",
       "'pre_tokenizer.replacement' is not one character"},
      {R"({"pre_tokenizer":{"type":"Punctuation","behavior":"Gone","pretokenizers":null}})",
       "'pre_tokenizer.behavior' is 'Gone'"},
      {R"({"decoder":{"type":"CTC"}})", "'decoder.type' is 'CTC'"},
      {R"({"decoder":{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"ByteLevel"}]}})",
       "'decoder.decoders.type' is 'ByteLevel'"},
      {R"({"post_processor":{"type":"BertProcessing"}})", "'post_processor.cls' is no token"},
      {R"({"post_processor":{"type":"TemplateProcessing","single":[{"X":1}]}})",
       "neither the text nor one token"},
  };
  for (const Case& c : cases) {
    json t = byte_level();
    t.merge_patch(json::parse(c.change));
    const auto spec = parse(t);
    ASSERT_FALSE(spec) << c.change;
    EXPECT_NE(spec.error().message.find(c.message), std::string::npos) << spec.error().message;
  }
}

TEST(TokenizerJson, RefusesNestingAndSize) {
  json sequence = {{"type", "NFC"}};
  for (int i = 0; i < 12; ++i)
    sequence = {{"type", "Sequence"}, {"normalizers", json::array({sequence})}};
  json t = byte_level();
  t["normalizer"] = sequence;
  EXPECT_FALSE(parse(t));
  EXPECT_FALSE(parse_tokenizer_json("[]", "t.json"));
  EXPECT_FALSE(parse_tokenizer_json(std::string(100000, '['), "t.json"));
  EXPECT_FALSE(parse_tokenizer_json(R"({"model":{},"model":{}})", "t.json"));
}

// Every value of a real file replaced by one of another kind: an error or a tokenizer, no crash.
TEST(TokenizerJson, SurvivesWrongTypes) {
  const json values[] = {nullptr,          true,      -1, 1.5, "x", json::array(), json::object(),
                         json::array({1}), 4294967296};
  for (const json& original : {byte_level(), byte_fallback()}) {
    const json flat = original.flatten();
    for (const auto& [place, unused] : flat.items())
      for (json::json_pointer at(place); !at.empty(); at = at.parent_pointer())
        for (const json& value : values) {
          json changed = original;
          changed[at] = value;
          static_cast<void>(parse(changed));
        }
  }
}

}  // namespace
}  // namespace octavo
