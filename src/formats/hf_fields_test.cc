#include "formats/hf_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "formats/gguf.h"
#include "formats/hf_metadata.h"
#include "support/hf_folder.h"

namespace octavo {
namespace {

using namespace testing;
using nlohmann::json;
namespace fs = std::filesystem;

std::string tiny(const std::string& name) { return tiny_data(name); }

TEST_F(HfModelFolder, OneSettingInTwoSpellingsMustBeOneValue) {
  json plain = config();
  for (const char* field :
       {"rope_parameters", "rope_scaling", "rope_theta", "dtype", "torch_dtype"})
    plain.erase(field);
  const size_t num_layers = plain["num_hidden_layers"];
  const json linear = {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 7000.0}};
  const struct {
    json fields;
    const char* says;  // nullptr: they agree
  } cases[] = {
      {{{"rope_parameters", linear}, {"rope_scaling", {{"type", "linear"}, {"factor", 4}}}},
       nullptr},
      {{{"rope_parameters", linear}, {"rope_theta", 7000}}, nullptr},
      {{{"rope_parameters", linear}, {"rope_scaling", nullptr}}, nullptr},
      {{{"rope_scaling", {{"type", "su"}, {"rope_type", "longrope"}}}},
       "'rope_scaling.long_factor'"},  // agrees so far
      {{{"rope_parameters", linear}, {"rope_scaling", {{"type", "linear"}, {"factor", 8}}}},
       "'rope_parameters' and 'rope_scaling' are one setting"},
      {{{"rope_parameters", linear}, {"rope_scaling", {{"type", "dynamic"}, {"factor", 4}}}},
       "'rope_parameters' and 'rope_scaling' are one setting"},
      {{{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 7000}}},
        {"rope_scaling", {{"type", "linear"}, {"factor", 4}}}},
       "'rope_parameters' and 'rope_scaling' are one setting"},
      {{{"rope_parameters", linear}, {"rope_theta", 8000}},
       "'rope_parameters.rope_theta' and 'rope_theta' are one setting"},
      {{{"rope_scaling", {{"type", "linear"}, {"rope_type", "dynamic"}, {"factor", 2}}}},
       "'rope_scaling.rope_type' and 'rope_scaling.type' are one setting"},
      {{{"torch_dtype", "float32"}, {"dtype", "float32"}}, nullptr},
      {{{"torch_dtype", "float32"}, {"dtype", "float16"}},
       "'dtype' and 'torch_dtype' are one setting"},
      {{{"num_local_experts", 4}, {"num_experts", 8}, {"num_experts_per_tok", 2}},
       "'num_local_experts' and 'num_experts' are one setting"},
      {{{"sliding_window", 16}, {"sliding_window_pattern", 2}, {"_sliding_window_pattern", 3}},
       "'sliding_window_pattern' and '_sliding_window_pattern' are one setting"},
      {{{"sliding_window", 16},
        {"use_sliding_window", false},
        {"layer_types", json(num_layers, "sliding_attention")}},
       "'use_sliding_window' and 'layer_types' are one setting"},
      {{{"sliding_window", 16},
        {"use_sliding_window", false},
        {"layer_types", json(num_layers, "full_attention")}},
       nullptr},
      {{{"rope_scaling", {{"type", "linear"}, {"factor", 2}, {"x\x1b[2J", 1}}}},
       "'rope_scaling.x\\x1b[2J'"},
  };
  for (const auto& [fields, says] : cases) {
    json c = plain;
    c.update(fields);
    const auto read = read_hf_metadata(c.dump(), "config.json", "");
    if (!says) {
      EXPECT_TRUE(read) << fields << read.error().message;
      continue;
    }
    ASSERT_FALSE(read) << fields;
    EXPECT_NE(read.error().message.find(says), std::string::npos) << read.error().message;
  }
}

TEST_F(HfModelFolder, FieldsThatAskForNothingAreTaken) {
  const json neutral = {{"use_mrope", false},
                        {"lm_head_bias", false},
                        {"full_attn_mod", 1},
                        {"interpolate_factor", 1},
                        {"rope_interleaved", false},
                        {"use_bidirectional_attention", false},
                        {"mlp_bias", false},
                        {"embedding_multiplier", 1.0},
                        {"logits_scaling", 1},
                        {"final_logit_softcapping", 0},
                        {"num_local_experts", 0},
                        {"num_experts_per_tok", 0},
                        {"pruned_heads", json::object()},
                        {"chunk_size_feed_forward", 0},
                        {"sliding_window", nullptr},
                        {"new_kind_of_norm", nullptr},
                        {"num_key_value_heads", {2, 2}},
                        {"intermediate_size", std::vector<int>(2, config()["intermediate_size"])},
                        // Of training and of other programs.
                        {"_attn_implementation_autoset", true},
                        {"attention_dropout", 0.5},
                        {"do_sample", true},
                        {"temperature", 0.6},
                        {"unsloth_version", "2026.1"},
                        {"num_labels", 3}};
  for (const auto& [field, value] : neutral.items()) {
    json c = config();
    c[field] = value;
    const auto read = read_hf_metadata(c.dump(), "config.json", "");
    ASSERT_TRUE(read) << field << ": " << read.error().message;
    EXPECT_TRUE(read->notes.empty()) << read->notes[0];
  }
  json all = config();
  all.update(neutral);
  set_config(all);
  const auto model = HfModel::open(path());
  ASSERT_TRUE(model) << model.error().message;
  expect_same_tensors(**model, *GgufFile::open(tiny("llama-tied") + "/llama-tied-F32.gguf"));
}

TEST_F(HfModelFolder, FieldsThatAskForSomethingElseAreRefusedByName) {
  const json other = {{"use_mrope", true},          {"lm_head_bias", true},
                      {"full_attn_mod", 2},         {"interpolate_factor", 2.0},
                      {"rope_interleaved", true},   {"use_bidirectional_attention", true},
                      {"routed_scaling_factor", 2}, {"num_key_value_heads", {2, 1}},
                      {"new_kind_of_norm", false},  {"pruned_heads", {{"0", {1}}}}};
  for (const auto& [field, value] : other.items()) {
    json c = config();
    c[field] = value;
    const auto read = read_hf_metadata(c.dump(), "config.json", "");
    ASSERT_FALSE(read) << field;
    EXPECT_EQ(read.error().code, ErrorCode::unsupported) << read.error().message;
    EXPECT_NE(read.error().message.find("'" + field + "'"), std::string::npos)
        << read.error().message;
  }
}

TEST_F(HfModelFolder, FieldsWithNamesOfTrainingAreNoted) {
  json c = config();
  c["_something_private"] = true;
  c["my_dropout"] = 0.1;
  c["lm_loss_weight\x1b"] = 2;
  const auto read = read_hf_metadata(c.dump(), "config.json", "");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->notes.size(), 1u);
  EXPECT_EQ(read->notes[0],
            "config.json: not known, and passed over by their names: "
            "'_something_private', 'lm_loss_weight\\x1b', 'my_dropout'");
}

// Whatever a field says, it is read or refused, and a message shows nothing that a terminal obeys.
TEST_F(HfModelFolder, MutatedConfigurations) {
  const json odd_values[] = {nullptr,
                             true,
                             false,
                             0,
                             -1,
                             1,
                             3,
                             0.5,
                             1e308,
                             -1e308,
                             UINT64_MAX,
                             "",
                             "x",
                             "\x1b[2J\x9b",
                             json::array(),
                             json::object(),
                             {1, 2},
                             {1, "x"},
                             {{"type", "linear"}, {"factor", 2}},
                             {{"rope_type", "yarn"}},
                             {{"full_attention", {{"rope_theta", 1}}}},
                             {{"hidden_size", 16}}};
  const char* more[] = {"rope_scaling",     "rope_parameters",     "text_config",
                        "use_mrope",        "num_local_experts",   "num_experts",
                        "layer_types",      "sliding_window",      "_x",
                        "some_dropout\x1b", "quantization_config", "pruned_heads"};
  std::vector<json> originals;
  for (const char* family : {"llama-tied", "qwen3", "phi3", "gemma2", "gemma3", "mixtral", "bert"})
    if (fs::exists(tiny(family) + "/config.json"))
      originals.push_back(json::parse(read_file(tiny(family) + "/config.json")));
  std::mt19937_64 random(11);
  int taken = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    json c = originals[random() % originals.size()];
    for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
      auto field = c.begin();
      std::advance(field, random() % c.size());
      const std::string name = random() % 2 ? field.key() : more[random() % std::size(more)];
      c[name] = odd_values[random() % std::size(odd_values)];
    }
    const auto read =
        read_hf_metadata(c.dump(-1, ' ', true, json::error_handler_t::replace), "config.json", "");
    ++(read ? taken : refused);
    const std::vector<std::string> said =
        read ? read->notes : std::vector<std::string>{read.error().message};
    for (const std::string& text : said) {
      EXPECT_FALSE(text.empty());
      EXPECT_TRUE(std::ranges::all_of(text, [](char ch) { return ch >= ' ' && ch <= '~'; }))
          << text;
    }
  }
  EXPECT_GT(taken, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace octavo
