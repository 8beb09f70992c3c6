#include "engine/hub_name.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(HubName, HasARepositoryAndMaybeAFile) {
  const auto plain = parse_hub_name("Qwen/Qwen2.5-7B_it+x");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->repository(), "Qwen/Qwen2.5-7B_it+x");
  EXPECT_EQ(plain->file, "");
  const auto file = parse_hub_name("o/n:Q4/a.gguf");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->file, "Q4/a.gguf");
  EXPECT_EQ(file->text(), "o/n:Q4/a.gguf");
}

TEST(HubName, NoPartLeavesItsFolder) {
  using namespace std::string_literals;
  for (const std::string& text : {"o"s,
                                  "o/"s,
                                  "/n"s,
                                  "o/n/m"s,
                                  "../n"s,
                                  "o/.."s,
                                  ".o/n"s,
                                  "-o/n"s,
                                  "o/n:"s,
                                  "o/n:../a.gguf"s,
                                  "o/n:/a.gguf"s,
                                  "o/n:a/../b.gguf"s,
                                  "o/n:a//b.gguf"s,
                                  "o/n:.gguf"s,
                                  "o/n:a.gguf/"s,
                                  "o/n:a.bin"s,
                                  "o/n:a\\b.gguf"s,
                                  "o/n:%2e%2e.gguf"s,
                                  "o/n:a\0.gguf"s,
                                  "o\n/n"s,
                                  "o/n:a:b.gguf"s})
    EXPECT_FALSE(parse_hub_name(text)) << text;
}

TEST(HubName, AFolderConsistsOfKnownFiles) {
  for (const char* path :
       {"config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors",
        "model-00001-of-00002.safetensors", "model.safetensors.index.json"})
    EXPECT_TRUE(is_folder_file(path)) << path;
  for (const char* path :
       {"", "README.md", "x.py", "vocab.json", "pytorch_model.bin", "a/model.safetensors",
        "a/config.json", "../config.json", "../model.safetensors", ".safetensors", ".a.safetensors",
        "a b.safetensors", "a\\b.safetensors", "a.safetensors/", "%2e.safetensors", "a.gguf"})
    EXPECT_FALSE(is_folder_file(path)) << path;
}

TEST(HubName, PathsAreNone) {
  for (const char* path : {"/a/b", "./a", "../a", "models/a.gguf", "a", "a.gguf", "a/b/c", ""})
    EXPECT_FALSE(looks_like_hub_name(path)) << path;
  for (const char* name : {"a/b", "a/b-GGUF", "a/b:c.gguf", "a/b:../c"})
    EXPECT_TRUE(looks_like_hub_name(name)) << name;
}

}  // namespace
}  // namespace octavo
