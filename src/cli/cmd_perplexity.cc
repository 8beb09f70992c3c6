#include <fmt/format.h>

#include <cmath>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/json_output.h"
#include "cli/model_loading.h"
#include "cli/perplexity_windows.h"
#include "cli/sampling_options.h"
#include "cli/token_json.h"
#include "engine/score.h"
#include "formats/quote.h"

namespace octavo::cli {
namespace {

using Windows = std::vector<std::vector<TokenId>>;

struct Scores {
  std::vector<double> window_nll;
  std::vector<int> window_tokens;  // predicted ones
  double nll = 0;
  int64_t predicted_tokens = 0;

  double perplexity() const { return std::exp(nll / static_cast<double>(predicted_tokens)); }
};

bool is_json(const std::string& path) { return path.ends_with(".json"); }

Result<Windows> windows_of_text(const std::string& text, const OptionValues& options,
                                const LoadedEngine& engine) {
  const int context = options.integer("context");
  if (context > engine.max_model_len)
    return fail(ErrorCode::context_overflow,
                fmt::format("--context is {} and the model's context holds {} tokens", context,
                            engine.max_model_len));
  const Tokenizer& tokenizer = *engine.tokenizer;
  OCTAVO_TRY(const std::vector<TokenId> ids, tokenizer.encode(text, {}));
  return cut_into_windows(ids, context, tokenizer.adds_bos() ? tokenizer.bos() : std::nullopt);
}

Result<Scores> score_all(const Windows& windows, const LoadedEngine& engine, Terminal& terminal) {
  Scores scores;
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

Json to_json(const Scores& scores) {
  return {{"perplexity", scores.perplexity()},
          {"nll", scores.nll},
          {"predicted_tokens", scores.predicted_tokens},
          {"num_windows", scores.window_nll.size()},
          {"window_nll", scores.window_nll},
          {"window_predicted_tokens", scores.window_tokens}};
}

}  // namespace

Result<void> run_perplexity(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  const std::string& path = invocation.positionals[1];
  OCTAVO_TRY(const std::string text,
             read_text_file(path, is_json(path) ? kMaxJsonBytes : kMaxTextBytes));
  Windows windows;
  if (is_json(path)) {
    OCTAVO_TRY(windows, parse_windows(text, quote(path)));
  }
  EngineOptions engine_options = read_engine_options(options);
  engine_options.model = invocation.positionals[0];
  engine_options.max_num_seqs = 1;
  OCTAVO_TRY(const LoadedEngine engine, load_with_progress(std::move(engine_options), terminal));
  if (!is_json(path)) {
    OCTAVO_TRY(windows, windows_of_text(text, options, engine));
  }
  if (windows.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} has too little text: no token to predict", quote(path)));
  OCTAVO_TRY(const Scores scores, score_all(windows, engine, terminal));
  terminal.write(options.flag("json")
                     ? dump_line(to_json(scores))
                     : fmt::format("perplexity {:.4f} over {} tokens in {} windows\n",
                                   scores.perplexity(), scores.predicted_tokens,
                                   scores.window_nll.size()));
  return {};
}

}  // namespace octavo::cli
