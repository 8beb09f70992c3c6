#include "engine/load.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stop_token>

#include "support/paths.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

EngineOptions options_with(const std::stop_source& stop) {
  EngineOptions options;
  options.model = testing::test_data("tiny/llama-tied/llama-tied-F32.gguf");
  options.threads = 1;
  options.stop_loading = stop.get_token();
  return options;
}

TEST(Load, CanBeStoppedBeforeAndWhileItReadsWeights) {
  std::stop_source before;
  before.request_stop();
  EXPECT_EQ(load_engine(options_with(before)).error().code, ErrorCode::cancelled);

  std::stop_source within;
  EngineOptions options = options_with(within);
  double reached = 0;
  options.on_progress = [&](double done) {
    reached = done;
    if (done > 0.2) within.request_stop();
  };
  EXPECT_EQ(load_engine(options).error().code, ErrorCode::cancelled);
  EXPECT_LT(reached, 1);
}

std::vector<TokenId> answer(const LoadedEngine& engine) {
  Request request{{TokenId{1}, TokenId{7}, TokenId{9}}, {}};
  request.params.temperature = 0;
  request.params.max_tokens = 12;
  request.params.ignore_eos = true;
  const auto output = engine.engine->run(request);
  EXPECT_TRUE(output) << (output ? "" : output.error().message);
  return output ? output->outputs[0].token_ids : std::vector<TokenId>();
}

LoadedEngine load(EngineOptions options) {
  options.threads = 1;
  auto engine = load_engine(options);
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return std::move(*engine);
}

// A folder rounded at load answers as the GGUF file that was rounded before.
TEST(Load, FoldersOfSafetensors) {
  const std::string folder = testing::test_data("tiny/llama-tied");
  const struct {
    EngineOptions options;
    const char* same_as;
  } cases[] = {{{.dtype = "auto"}, "F32"},
               {{.dtype = "float32"}, "F32"},
               {{.dtype = "float16"}, "F16"},
               {{.quantization = "int8"}, "Q8_0"},
               {{.quantization = "int4"}, "Q4_0"}};
  for (auto [options, type] : cases) {
    SCOPED_TRACE(type);
    options.model = folder;
    const LoadedEngine from_folder = load(options);
    const LoadedEngine from_gguf = load({.model = folder + "/llama-tied-" + type + ".gguf",
                                         .dtype = options.dtype == "float32" ? "float32" : "auto"});
    EXPECT_EQ(answer(from_folder), answer(from_gguf));
    EXPECT_TRUE(from_folder.chat_template);
    EXPECT_EQ(from_folder.tokenizer->eos(), from_gguf.tokenizer->eos());
  }
  EngineOptions bfloat16{.model = folder, .dtype = "bfloat16"};
  EXPECT_EQ(answer(load(bfloat16)).size(), 12u);
}

TEST(Load, ATypeForWeightsAsksNothingOfAGgufFile) {
  const std::string file = testing::test_data("tiny/llama-tied/llama-tied-Q4_0.gguf");
  const LoadedEngine plain = load({.model = file});
  for (const std::string dtype : {"float16", "bfloat16"}) {
    const LoadedEngine asked = load({.model = file, .dtype = dtype});
    EXPECT_EQ(answer(asked), answer(plain));
    ASSERT_EQ(asked.notes.size(), plain.notes.size() + 1);
    EXPECT_NE(::testing::PrintToString(asked.notes).find("--dtype " + dtype), std::string::npos);
  }
  EXPECT_EQ(load_engine({.model = file, .quantization = "int8"}).error().code,
            ErrorCode::invalid_argument);
}

// Each way of rounding has a pack of its own.
TEST(Load, PacksKnowHowAFolderWasRounded) {
  const testing::TempFolder temp;
  EngineOptions options{.model = testing::test_data("tiny/llama-tied")};
  options.pack_folder = temp.file("packs");
  const auto exact = answer(load(options));
  EXPECT_NE(load(options).pack, nullptr);
  options.quantization = "int4";
  EXPECT_EQ(load(options).pack, nullptr);
  EXPECT_NE(load(options).pack, nullptr);
  options.quantization = "none";
  EXPECT_EQ(answer(load(options)), exact);
}

// A copy of a tiny folder whose JSON files a test changes.
class LoadFolder : public ::testing::Test {
 protected:
  LoadFolder() {
    for (const auto& entry :
         std::filesystem::directory_iterator(testing::test_data("tiny/llama-tied")))
      if (entry.path().extension() != ".gguf")
        std::filesystem::copy(entry.path(), folder_.file(""));
  }

  void change(const std::string& name, const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json json = nlohmann::json::parse(testing::read_file(folder_.file(name)));
    change(json);
    folder_.write(name, json.dump());
  }
  void add_token(int id, bool special) {
    change("tokenizer.json", [&](nlohmann::json& json) {
      json["added_tokens"].push_back({{"id", id}, {"content", "<|more|>"}, {"special", special}});
    });
  }
  Result<LoadedEngine> try_load() const {
    return load_engine({.model = folder_.file(""), .threads = 1});
  }
  std::string ends() const {
    std::string out;
    const LoadedEngine loaded = load({.model = folder_.file("")});
    for (const EndToken& end : loaded.tokenizer->ends())
      out += fmt::format("{} {}; ", raw(end.id), text_of(end.reason));
    return out;
  }

  testing::TempFolder folder_;
};

TEST_F(LoadFolder, TokensWithoutARowAreTheModelsFault) {
  add_token(512, false);
  const auto of_text = try_load();
  ASSERT_FALSE(of_text);
  EXPECT_EQ(of_text.error().code, ErrorCode::corrupt_file);
  EXPECT_NE(of_text.error().message.find("token 512 ('<|more|>') may come of text"),
            std::string::npos);
}

TEST_F(LoadFolder, ControlTokensWithoutARowMustNotBeNeeded) {
  add_token(512, true);
  auto loaded = try_load();
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(loaded->notes.size(), 1u);
  EXPECT_NE(loaded->notes[0].find("control tokens have no row"), std::string::npos);
  EXPECT_EQ(answer(*loaded).size(), 12u);
  change("tokenizer_config.json", [](nlohmann::json& json) { json["eos_token"] = "<|more|>"; });
  loaded = try_load();
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("token 512 ('<|more|>') ends an answer"),
            std::string::npos);
}

TEST_F(LoadFolder, ATokenOfTheTemplateWithoutARowIsAnError) {
  add_token(512, true);
  folder_.write("chat_template.jinja",
                "{% for m in messages %}<|more|>{{ m.content }}<|im_end|>{% endfor %}");
  const auto loaded = try_load();
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("is written by the chat template"), std::string::npos);
}

TEST_F(LoadFolder, ATokenOfAGivenTemplateWithoutARowIsAnError) {
  add_token(512, true);
  LoadedEngine loaded = load({.model = folder_.file("")});
  const auto used = use_chat_template(
      loaded, *ChatTemplate::parse("{% for m in messages %}{{ m.content }}<|more|>{% endfor %}"));
  ASSERT_FALSE(used);
  EXPECT_NE(used.error().message.find("<|more|>"), std::string::npos) << used.error().message;
}

TEST_F(LoadFolder, AnswersEndWithWhatEndsTurns) {
  // The end of a document is all that the files name, as in models whose base was taken over.
  for (const char* name : {"config.json", "generation_config.json"})
    change(name, [](nlohmann::json& json) { json["eos_token_id"] = 0; });
  change("tokenizer_config.json",
         [](nlohmann::json& json) { json["eos_token"] = "<|endoftext|>"; });
  EXPECT_EQ(ends(), "0 the model's end of text; 2 a usual name; ");
  folder_.write("chat_template.jinja",
                "{% for m in messages %}{{ m.content }}<|pad|>\n{% endfor %}");
  EXPECT_EQ(ends(),
            "0 the model's end of text; 2 a usual name; 3 ends turns in the chat template; ");
  LoadedEngine loaded = load({.model = folder_.file("")});
  ASSERT_TRUE(use_chat_template(
      loaded,
      *ChatTemplate::parse("{% for m in messages %}{{ m.content }}<|im_start|>{% endfor %}")));
  EXPECT_TRUE(loaded.tokenizer->is_eog(TokenId{1}));
  Request request{{TokenId{5}}, {}};
  request.params.temperature = 0;
  request.params.logit_bias = {{TokenId{1}, 100}};
  const auto output = loaded.engine->run(request);
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->outputs[0].token_ids, std::vector{TokenId{1}});
  EXPECT_EQ(output->outputs[0].finish_reason, FinishReason::stop);
}

TEST_F(LoadFolder, AListOfTemplatesWithoutADefaultSaysWhichThereAre) {
  std::filesystem::remove(folder_.file("chat_template.jinja"));
  change("tokenizer_config.json", [](nlohmann::json& json) {
    json["chat_template"] = {{{"name", "tool_use"}, {"template", "{{ tools }}"}},
                             {{"name", "rag\x1b"}, {"template", "{{ documents }}"}}};
  });
  const auto loaded = try_load();
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_TRUE(loaded->chat_template_error);
  EXPECT_NE(loaded->chat_template_error->message.find(R"('tool_use', 'rag\x1b')"),
            std::string::npos)
      << loaded->chat_template_error->message;
  EXPECT_TRUE(loaded->tool_template);
  ASSERT_EQ(loaded->notes.size(), 1u);
  EXPECT_NE(loaded->notes[0].find("no chat without --chat-template"), std::string::npos);
}

}  // namespace
}  // namespace octavo
