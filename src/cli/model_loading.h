// Opens what a command needs of a model, no more, and shows progress.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/terminal.h"
#include "engine/load.h"
#include "formats/model_source.h"
#include "text/tokenizer.h"

namespace octavo::cli {

// The file of MODEL as the user wrote it: a path, a short name, or a name on a hub, which is
// fetched if it is not here.
Result<std::string> find_model(const std::string& model, Terminal& terminal);
// Fetches a model from the hub, with progress, if it is not here and whole; returns its path.
Result<std::string> pull_model(const std::string& model, Terminal& terminal);

// As find_model, but nothing is fetched.
Result<std::unique_ptr<ModelSource>> open_model_file(const std::string& model);
Result<Tokenizer> load_tokenizer(const ModelSource& file);

// Loads with progress on a terminal, and says so if only the slow path can run on this machine.
// options.model is the model as the user wrote it.
Result<LoadedEngine> load_with_progress(
    EngineOptions options, Terminal& terminal,
    Result<LoadedEngine> (*load)(const EngineOptions&) = load_engine);

// The same, for what writes text or looks at logits: an encoder is refused.
Result<LoadedEngine> load_generator(
    EngineOptions options, Terminal& terminal,
    Result<LoadedEngine> (*load)(const EngineOptions&) = load_engine);

// Tokenizer::encode, and a note on standard error if the vocabulary has no token for some bytes.
Result<std::vector<TokenId>> encode_text(const Tokenizer& tokenizer, std::string_view text,
                                         Tokenizer::EncodeOptions options, Terminal& terminal);

// A prefill's progress on a terminal.
std::function<void(int done, int total)> prefill_progress(Terminal& terminal);

}  // namespace octavo::cli
