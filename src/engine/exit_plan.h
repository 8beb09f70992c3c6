// Which layers `early_exit` skips in a model, as `octavo tune early-exit` has found: a small JSON
// file, kept beside the model's pack (pack_cache.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/model_source.h"
#include "spec/early_exit.h"

namespace octavo {

// {"skip_layers": [..], "draft_confidence_threshold": 0.4, ...}: other fields are for people.
// Errors: corrupt_file.
Result<EarlyExitOptions> parse_exit_plan(std::string_view text);

// Nothing: there is none for exactly this file. Errors: those of PrivateFolder; corrupt_file.
Result<std::optional<EarlyExitOptions>> find_exit_plan(const std::string& folder,
                                                       const ModelSource& model);

// Returns the file's path. Errors: those of PrivateFolder; unsupported (the model is not a file).
Result<std::string> store_exit_plan(const std::string& folder, const ModelSource& model,
                                    std::string_view text);

}  // namespace octavo
