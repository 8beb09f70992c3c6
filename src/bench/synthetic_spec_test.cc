#include "bench/synthetic_spec.h"

#include <gtest/gtest.h>

#include <array>

namespace octavo {
namespace {

TEST(SyntheticSpec, ReadsEveryKey) {
  const auto spec = parse_synthetic(
      "requests=200,prompt=64-512,output=80%:20-60+20%:300-400,shared=512,groups=4,rate=5.5,"
      "burstiness=0.5,priorities=3,long=4096@2.5,seed=18446744073709551615");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->num_requests, 200);
  EXPECT_EQ(spec->prompt.max(), 512);
  EXPECT_EQ(spec->output.max(), 400);
  EXPECT_EQ(spec->shared_tokens, 512);
  EXPECT_EQ(spec->groups, 4);
  EXPECT_EQ(spec->rate, 5.5);
  EXPECT_EQ(spec->burstiness, .5);
  EXPECT_EQ(spec->priorities, 3);
  ASSERT_TRUE(spec->intruder);
  EXPECT_EQ(spec->intruder->tokens, 4096);
  EXPECT_EQ(spec->intruder->arrival_s, 2.5);
  EXPECT_EQ(spec->seed, 18446744073709551615u);
}

TEST(SyntheticSpec, NothingIsTheDefault) {
  const auto spec = parse_synthetic("");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->num_requests, SyntheticSpec{}.num_requests);
  EXPECT_FALSE(spec->rate);
  EXPECT_FALSE(parse_synthetic("rate=inf")->rate);
}

TEST(SyntheticSpec, ReadsLogNormalLengths) {
  EXPECT_EQ(parse_synthetic("output=lognormal:256:2048")->output.max(), 2048);
  EXPECT_EQ(parse_synthetic("output=lognormal:256.5:2048:1.5")->output.max(), 2048);
}

struct Refused {
  std::string_view text;
  std::array<std::string_view, 2> words;  // of the message
};

TEST(SyntheticSpec, AnErrorNamesTheKeyAndWhatItTakes) {
  for (const auto& [text, words] : {
           Refused{"request=5", {"'request'", "known are requests, prompt"}},
           Refused{"requests", {"'requests' has no value", "1 to 1000000"}},
           Refused{"requests=", {"'requests' is ''", "1 to 1000000"}},
           Refused{"requests=0", {"'requests' is '0'", "1 to 1000000"}},
           Refused{"requests=1000001", {"'requests'", "1 to 1000000"}},
           Refused{"requests=5x", {"'requests' is '5x'", "1 to 1000000"}},
           Refused{"requests=99999999999999999999", {"'requests'", "1 to 1000000"}},
           Refused{"requests=5,,seed=1", {"''", "known are"}},
           Refused{"requests=5,requests=6", {"'requests'", "twice"}},
           Refused{"prompt=0", {"'prompt' is '0'", "LOW-HIGH"}},
           Refused{"prompt=64-", {"'prompt' is '64-'", "LOW-HIGH"}},
           Refused{"prompt=64-32", {"'prompt' is '64-32'", "64 to 32"}},
           Refused{"prompt=50%:1-2+20%:3-4", {"'prompt'", "add up to 70 %"}},
           Refused{"prompt=nan%:1-2+20%:3-4", {"'prompt'", "SHARE%"}},
           Refused{"prompt=1-2+3-4", {"'prompt'", "200 %"}},
           Refused{"output=lognormal:256", {"'output'", "lognormal:MEAN:MAX"}},
           Refused{"output=lognormal:256:128", {"'output'", "mean < maximum"}},
           Refused{"output=lognormal:nan:128", {"'output'", "mean < maximum"}},
           Refused{"output=lognormal:20:128:0", {"'output'", "sigma"}},
           Refused{"output=lognormal:20:128:1:1", {"'output'", "lognormal:MEAN:MAX"}},
           Refused{"rate=0", {"'rate' is '0'", "inf for all at once"}},
           Refused{"rate=nan", {"'rate' is 'nan'", "inf for all at once"}},
           Refused{"burstiness=0", {"'burstiness' is '0'", "Poisson"}},
           Refused{"long=4096", {"'long' is '4096'", "TOKENS@SECONDS"}},
           Refused{"long=4096@-1", {"'long' is '4096@-1'", "TOKENS@SECONDS"}},
           Refused{"seed=-1", {"'seed' is '-1'", "0 on"}},
       }) {
    const auto spec = parse_synthetic(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::invalid_argument) << text;
    for (const std::string_view word : words)
      EXPECT_NE(spec.error().message.find(word), std::string::npos)
          << text << ": " << spec.error().message;
  }
}

TEST(SyntheticSpec, TheKeysOfTheHelpAreThoseThatAreRead) {
  for (const SyntheticKey& key : synthetic_keys()) {
    const auto spec = parse_synthetic(key.name);
    ASSERT_FALSE(spec);
    EXPECT_NE(spec.error().message.find(key.takes), std::string::npos) << spec.error().message;
  }
}

}  // namespace
}  // namespace octavo
