// SmolLM2-135M-Instruct, Q4_1.
#include "support/reference_check.h"

namespace octavo {
namespace {

using namespace testing;

ReferenceCheck check(const Tolerance& t) { return ReferenceCheck(smollm2_path(), t); }

TEST(SmolLM2Int8, Logits) { check(kInt8).logits("logits/smollm2.jsonl"); }
TEST(SmolLM2Int8, Greedy) { check(kInt8).greedy("greedy/smollm2.jsonl"); }
TEST(SmolLM2Int8, Perplexity) {
  check(kInt8).perplexity("perplexity/smollm2_gpl3_apache2_512.json", 16);
}
TEST(SmolLM2Float32, Logits) { check(kFloat32).logits("logits/smollm2.jsonl"); }
TEST(SmolLM2Float32, Greedy) { check(kFloat32).greedy("greedy/smollm2.jsonl"); }
TEST(SmolLM2Float32, Perplexity) {
  check(kFloat32).perplexity("perplexity/smollm2_gpl3_apache2_512.json", 4);
}

}  // namespace
}  // namespace octavo
