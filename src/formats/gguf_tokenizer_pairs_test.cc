#include "formats/gguf_tokenizer_pairs.h"

#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "formats/gguf_tokenizer.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

// What is read again from a file that was written.
TokenizerSpec written(const TokenizerSpec& spec, std::vector<std::string>& notes) {
  const testing::TempFolder folder;
  GgufPairs pairs;
  const auto noted = add_tokenizer_pairs(spec, 3, "folder", pairs);
  EXPECT_TRUE(noted) << noted.error().message;
  notes = noted.value_or(std::vector<std::string>());
  auto writer = GgufFileWriter::create(folder.file("x.gguf"), false, pairs, {});
  EXPECT_TRUE(writer && writer->finish());
  const auto file = GgufFile::open(folder.file("x.gguf"));
  EXPECT_TRUE(file) << file.error().message;
  auto read = read_tokenizer_spec(*file);
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(TokenizerSpec());
}

TokenizerSpec bytes_alone() {
  TokenizerSpec spec;
  spec.model = "gpt2";
  spec.pre = "gpt-2";
  for (const char* token : {"a", "b", "c"}) spec.tokens.push_back(token);
  return spec;
}

TEST(GgufTokenizerPairs, ATokenizerWithoutMergesIsReadBack) {
  std::vector<std::string> notes;
  const TokenizerSpec read = written(bytes_alone(), notes);
  EXPECT_EQ(read.tokens.size(), 3u);
  EXPECT_TRUE(read.merges.empty());
  EXPECT_TRUE(notes.empty());
}

TEST(GgufTokenizerPairs, TheTemplateForToolsIsKeptAndOthersAreNamed) {
  TokenizerSpec spec = bytes_alone();
  spec.chat_template = "plain";
  spec.tool_template = "tools";
  spec.template_names = {"default", "rag", "tool_use"};
  std::vector<std::string> notes;
  const TokenizerSpec read = written(spec, notes);
  EXPECT_EQ(read.chat_template, "plain");
  EXPECT_EQ(read.tool_template, "tools");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("'rag'"), std::string::npos) << notes[0];
}

}  // namespace
}  // namespace octavo
