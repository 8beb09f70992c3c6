// A server's life from its first listening to its last answer.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "engine/load.h"
#include "server/request_log.h"
#include "server/serve_options.h"

namespace octavo {

// What is served, once it has been loaded.
struct ServedModel {
  LoadedEngine loaded;
  std::string chat_template;  // its source; empty: none
};

struct ServeHooks {
  // Makes the engine; options have on_step and on_progress set. Called after the server listens.
  std::function<Result<ServedModel>(const EngineOptions&)> load;
  std::function<void(const std::string& url)> on_listening = {};
  std::function<void(const LoadedEngine&)> on_ready = {};
};

// Until `stop`: while the model is loaded that ends the server; later what is on its way may end
// first, for options.shutdown_timeout_s or until `at_once`.
// Errors: those of http::Server::start and of `load`.
Result<void> serve(ServeOptions options, EngineOptions engine, Log& log, const ServeHooks& hooks,
                   std::stop_token stop, std::stop_token at_once);

}  // namespace octavo
