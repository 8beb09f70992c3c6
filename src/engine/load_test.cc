#include "engine/load.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace octavo
