#include "spec/speculative_config.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

using enum DraftMethod;

// The message of the refusal; empty: it is taken.
std::string refused(std::string_view text) {
  const auto config = parse_speculative_config(text);
  return config ? "" : config.error().message;
}

TEST(SpeculativeConfig, NoTextIsNoSpeculation) {
  const auto config = parse_speculative_config("");
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->methods.empty());
}

TEST(SpeculativeConfig, EveryFieldArrives) {
  const auto config = parse_speculative_config(
      R"({"method": "suffix,draft_model", "model": "small", "num_speculative_tokens": 9,
          "adaptive": false, "prompt_lookup_min": 3, "prompt_lookup_max": 7,
          "suffix_decoding_max_tree_depth": 12, "suffix_decoding_max_cached_requests": 5,
          "suffix_decoding_max_spec_factor": 2.5, "suffix_decoding_min_token_prob": 0.25})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->methods, (std::vector{suffix, draft_model}));
  EXPECT_EQ(config->model, "small");
  EXPECT_EQ(config->num_speculative_tokens, 9);
  EXPECT_FALSE(config->adaptive);
  EXPECT_EQ(config->prompt_lookup_min, 3);
  EXPECT_EQ(config->prompt_lookup_max, 7);
  EXPECT_EQ(config->suffix.max_tree_depth, 12);
  EXPECT_EQ(config->suffix.max_cached_requests, 5);
  EXPECT_EQ(config->suffix.max_spec_factor, 2.5);
  EXPECT_EQ(config->suffix.min_token_prob, 0.25);
}

TEST(SpeculativeConfig, LayersToSkipAreOfEarlyExit) {
  const auto config = parse_speculative_config(
      R"({"method": "ngram,early-exit", "skip_layers": [7, 3], "draft_confidence_threshold": 0})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->methods, (std::vector{ngram, early_exit}));
  EXPECT_EQ(config->skip_layers, (std::vector{7, 3}));
  EXPECT_EQ(config->draft_confidence_threshold, 0);
  const auto tuned = parse_speculative_config(R"({"method": "early_exit"})");
  ASSERT_TRUE(tuned);
  EXPECT_FALSE(tuned->skip_layers);
  EXPECT_FALSE(tuned->draft_confidence_threshold);
  EXPECT_EQ(refused(R"({"method": "early_exit", "skip_layers": []})"), "");
  for (const char* layers : {"3", "[-1]", "[1.5]", "[null]", "[1e99]", "\"3\"", "{}"})
    EXPECT_NE(refused(R"({"method": "early_exit", "skip_layers": )" + std::string(layers) + "}")
                  .find("list of integers"),
              std::string::npos)
        << layers;
  EXPECT_NE(refused(R"({"method": "ngram", "skip_layers": [1]})").find("early_exit alone"),
            std::string::npos);
  EXPECT_NE(
      refused(R"({"method": "ngram", "draft_confidence_threshold": 1})").find("early_exit alone"),
      std::string::npos);
}

TEST(SpeculativeConfig, MethodsAreNamesWithCommas) {
  for (const char* both : {R"("ngram,suffix")", R"("ngram, suffix")", R"(" ngram ,suffix ")",
                           R"(["ngram","suffix"])"}) {
    const auto config = parse_speculative_config(R"({"method": )" + std::string(both) + "}");
    ASSERT_TRUE(config) << both;
    EXPECT_EQ(config->methods, (std::vector{ngram, suffix})) << both;
  }
  for (const char* method :
       {R"("")", R"("eagle")", R"("ngram,")", R"(",ngram")", R"("n gram")", R"("ngram,ngram")", "7",
        "null", "[]", R"(["ngram", 7])", R"(["ngram", "ngram"])"})
    EXPECT_NE(refused(R"({"method": )" + std::string(method) + "}").find("'method'"),
              std::string::npos)
        << method;
  EXPECT_EQ(refused(R"({"method": "eagle"})"),
            "--speculative-config: 'method' has 'eagle'; it must be ngram, suffix, draft_model or "
            "early_exit, or several with commas");
}

TEST(SpeculativeConfig, AModelAloneDrafts) {
  const auto config = parse_speculative_config(R"({"model": "small"})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->methods, std::vector{draft_model});
}

TEST(SpeculativeConfig, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> wrong[] = {
      {"ngram", "JSON object"},
      {"[]", "JSON object"},
      {"{}", "method"},
      {R"({"method": "ngram", "tokens": 5})", "tokens"},
      {R"({"method": "ngram", "method": "ngram"})", "twice"},
      {R"({"method": "ngram", "num_speculative_tokens": 0})", "1 to 32"},
      {R"({"method": "ngram", "num_speculative_tokens": 33})", "1 to 32"},
      {R"({"method": "ngram", "num_speculative_tokens": 1e99})", "num_speculative_tokens"},
      {R"({"method": "ngram", "num_speculative_tokens": 18446744073709551615})", "1 to 32"},
      {R"({"method": "ngram", "adaptive": 1})", "adaptive"},
      {R"({"method": "ngram", "prompt_lookup_min": 6, "prompt_lookup_max": 5})",
       "prompt_lookup_max"},
      {R"({"method": "suffix", "suffix_decoding_min_token_prob": 1.5})",
       "suffix_decoding_min_token_prob"},
      {R"({"method": "draft_model"})", "model"},
      {R"({"method": "draft_model", "model": ""})", "'model' is empty"},
      {R"({"model": ""})", "'model' is empty"},
      {R"({"method": "ngram", "model": "small"})", "draft_model alone"}};
  for (const auto& [text, part] : wrong) {
    EXPECT_NE(refused(text).find(part), std::string::npos) << text << ": " << refused(text);
    EXPECT_TRUE(refused(text).starts_with("--speculative-config")) << text;
  }
}

TEST(SpeculativeConfig, RejectionSampleMethod) {
  EXPECT_EQ(parse_speculative_config(R"({"method": "ngram"})")->rejection_sample_method,
            RejectionSampleMethod::strict);
  EXPECT_EQ(
      parse_speculative_config(R"({"method": "ngram", "rejection_sample_method": "probabilistic"})")
          ->rejection_sample_method,
      RejectionSampleMethod::probabilistic);
  for (const char* value : {R"("synthetic")", "1", "null", R"(["strict"])"})
    EXPECT_EQ(
        refused(std::string(R"({"method": "ngram", "rejection_sample_method": )") + value + "}"),
        "--speculative-config: 'rejection_sample_method' must be strict or probabilistic");
}

}  // namespace
}  // namespace octavo
