// `octavo serve`, apart from where the model comes from.
#pragma once

#include <functional>
#include <string>

#include "cli/command_line.h"
#include "cli/terminal.h"
#include "engine/load.h"

namespace octavo::cli {

// Makes the engine; options.model is `path`.
using LoadModel = std::function<Result<LoadedEngine>(const EngineOptions& options)>;

// Serves until Ctrl-C or SIGTERM.
// `path`: of the model's file.
Result<void> serve_model(const Invocation& invocation, const std::string& path, Terminal& terminal,
                         const LoadModel& load);

}  // namespace octavo::cli
