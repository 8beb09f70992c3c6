#include "bench/kv_cache_compare.h"

#include <fmt/format.h>

#include <utility>

#include "bench/median.h"

namespace octavo {
namespace {

struct Timing {
  double seconds = 0;  // median
  std::vector<TokenId> tokens;
};

// Ordinary tokens in the order of the vocabulary, from the start again at its end.
std::vector<TokenId> make_prompt(const Tokenizer& tokenizer, int length) {
  std::vector<TokenId> ordinary;
  const auto count = static_cast<int32_t>(tokenizer.vocab_size());
  for (int32_t id = 0; id < count && std::cmp_less(ordinary.size(), length); ++id)
    if (!tokenizer.is_control(TokenId{id})) ordinary.push_back(TokenId{id});
  std::vector<TokenId> prompt;
  for (size_t i = 0; std::cmp_less(i, length) && !ordinary.empty(); ++i)
    prompt.push_back(ordinary[i % ordinary.size()]);
  return prompt;
}

Result<void> check(const LoadedEngine& engine, const KvCacheCompareOptions& options) {
  if (options.gen_tokens < 2 || options.runs < 1)
    return fail(ErrorCode::invalid_argument,
                "a comparison needs 2 tokens to generate and 1 run at least");
  for (const int context : options.contexts)
    if (int64_t{context} + options.gen_tokens > engine.max_model_len)
      return fail(ErrorCode::context_overflow,
                  fmt::format("a context of {} and {} tokens to generate do not fit the model's "
                              "context of {}; name shorter ones",
                              context, options.gen_tokens, engine.max_model_len));
  return {};
}

Result<Timing> measure(Engine& engine, const Request& request, int runs) {
  Timing timing;
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    OCTAVO_TRY(RequestOutput output, engine.run(request));
    seconds.push_back(output.metrics.decode_s());
    timing.tokens = std::move(output.outputs.front().token_ids);
  }
  timing.seconds = median(std::move(seconds));
  return timing;
}

}  // namespace

Result<std::vector<KvCacheComparison>> compare_kv_cache(const LoadedEngine& engine,
                                                        const KvCacheCompareOptions& options) {
  OCTAVO_CHECK_OK(check(engine, options));
  EngineOptions engine_options{.max_num_seqs = 1, .enable_prefix_caching = false};
  OCTAVO_TRY(const auto cached, make_engine(engine, engine_options));
  engine_options.kv_cache = false;
  OCTAVO_TRY(const auto uncached, make_engine(engine, engine_options));
  std::vector<KvCacheComparison> rows;
  Request request;
  request.params.temperature = 0;
  request.params.ignore_eos = true;
  request.params.max_tokens = options.gen_tokens;
  for (const int context : options.contexts) {
    if (options.on_progress)
      options.on_progress(static_cast<int>(rows.size()), static_cast<int>(options.contexts.size()));
    request.prompt_token_ids = make_prompt(*engine.tokenizer, context);
    OCTAVO_TRY(const Timing with, measure(*cached, request, options.runs));
    OCTAVO_TRY(const Timing without, measure(*uncached, request, options.runs));
    const double timed_tokens = options.gen_tokens - 1;
    rows.push_back({context, with.seconds, without.seconds, timed_tokens / with.seconds,
                    timed_tokens / without.seconds, with.tokens == without.tokens});
  }
  return rows;
}

}  // namespace octavo
