#include "formats/hf_tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/hf_folder.h"

namespace octavo {
namespace {

using namespace testing;
using nlohmann::json;
namespace fs = std::filesystem;

json tokenizer_config(const std::string& path) {
  return json::parse(read_file(path + "/tokenizer_config.json"));
}

TEST_F(HfModelFolder, TemplatesWithNames) {
  fs::remove(path() + "/chat_template.jinja");
  json c = tokenizer_config(path());
  c["chat_template"] = {{{"name", "default"}, {"template", "plain"}},
                        {{"name", "tool_use"}, {"template", "with tools"}},
                        {{"name", "rag"}, {"template", "with documents"}}};
  write("tokenizer_config.json", c.dump());
  auto spec = (*HfModel::open(path()))->tokenizer();
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->chat_template, "plain");
  EXPECT_EQ(spec->tool_template, "with tools");
  EXPECT_EQ(spec->template_names, (std::vector<std::string>{"default", "tool_use", "rag"}));
  // Files of their own count more.
  write("chat_template.jinja", "plain, of a file");
  fs::create_directory(path() + "/additional_chat_templates");
  write("additional_chat_templates/tool_use.jinja", "with tools, of a file");
  spec = (*HfModel::open(path()))->tokenizer();
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->chat_template, "plain, of a file");
  EXPECT_EQ(spec->tool_template, "with tools, of a file");
  c["chat_template"][1]["template"] = 5;
  write("tokenizer_config.json", c.dump());
  const auto refused = (*HfModel::open(path()))->tokenizer();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("'chat_template' has an entry"), std::string::npos);
}

// Gemma 3's has 1.2 MB.
TEST_F(HfModelFolder, ManyAddedTokensMakeALargeFile) {
  json c = tokenizer_config(path());
  for (int i = 0; i < 10'000; ++i)
    c["added_tokens_decoder"][std::to_string(i)] = {{"content", std::string(100, 'x')}};
  write("tokenizer_config.json", c.dump());
  const auto spec = (*HfModel::open(path()))->tokenizer();
  ASSERT_TRUE(spec) << spec.error().message;
}

TEST_F(HfModelFolder, APaddingTokenThatIsNotThereIsNotedOnly) {
  json c = tokenizer_config(path());
  c["pad_token"] = "<no such token>";
  write("tokenizer_config.json", c.dump());
  const auto spec = (*HfModel::open(path()))->tokenizer();
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->notes.size(), 1u);
  EXPECT_NE(spec->notes[0].find("'pad_token' is '<no such token>'"), std::string::npos);
  c["eos_token"] = "<no such token>";
  write("tokenizer_config.json", c.dump());
  EXPECT_FALSE((*HfModel::open(path()))->tokenizer());
}

}  // namespace
}  // namespace octavo
