#include "cli/perplexity.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/input.h"
#include "cli/model_loading.h"
#include "cli/perplexity_windows.h"
#include "cli/token_json.h"
#include "engine/score.h"
#include "formats/quote.h"

namespace octavo::cli {
namespace {

using Windows = std::vector<std::vector<TokenId>>;

bool is_json(const std::string& path) { return path.ends_with(".json"); }

Result<Windows> windows_of_text(const std::string& text, int context, const LoadedEngine& engine) {
  if (context > engine.max_model_len)
    return fail(ErrorCode::context_overflow,
                fmt::format("--context is {} and the model's context holds {} tokens", context,
                            engine.max_model_len));
  const Tokenizer& tokenizer = *engine.tokenizer;
  OCTAVO_TRY(const std::vector<TokenId> ids, tokenizer.encode(text, {}));
  return cut_into_windows(ids, context, tokenizer.adds_bos() ? tokenizer.bos() : std::nullopt);
}

Result<PerplexityScores> score_all(const Windows& windows, const LoadedEngine& engine,
                                   Terminal& terminal) {
  PerplexityScores scores;
  for (size_t i = 0; i < windows.size(); ++i) {
    terminal.progress(scores.predicted_tokens == 0
                          ? fmt::format("Window 1 of {}", windows.size())
                          : fmt::format("Window {} of {}, perplexity so far {:.4f}", i + 1,
                                        windows.size(), scores.perplexity()));
    const auto score = octavo::score(*engine.engine, windows[i]);
    if (!score)
      return fail(score.error().code, fmt::format("window {}: {}", i, score.error().message));
    scores.window_nll.push_back(score->nll);
    scores.window_tokens.push_back(score->predicted_tokens);
    scores.nll += score->nll;
    scores.predicted_tokens += score->predicted_tokens;
  }
  terminal.clear_progress();
  return scores;
}

}  // namespace

double PerplexityScores::perplexity() const {
  return std::exp(nll / static_cast<double>(predicted_tokens));
}

Result<PerplexityScores> measure_perplexity(EngineOptions options, const std::string& file,
                                            int context, Terminal& terminal) {
  OCTAVO_TRY(const std::string text,
             read_text_file(file, is_json(file) ? kMaxJsonBytes : kMaxTextBytes));
  Windows windows;
  if (is_json(file)) {
    OCTAVO_TRY(windows, parse_windows(text, quote(file)));
  }
  options.max_num_seqs = 1;
  OCTAVO_TRY(const LoadedEngine engine, load_generator(std::move(options), terminal));
  if (!is_json(file)) {
    OCTAVO_TRY(windows, windows_of_text(text, context, engine));
  }
  if (windows.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} has too little text: no token to predict", quote(file)));
  return score_all(windows, engine, terminal);
}

}  // namespace octavo::cli
