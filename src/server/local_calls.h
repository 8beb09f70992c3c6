// Calls of the API without a network: what a client would send over HTTP, asked by the program
// itself and answered by the same code.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/load.h"
#include "http/message.h"
#include "server/serve_options.h"

namespace octavo {

class LocalCalls {
 public:
  // Of options what is about listening and access is not used.
  explicit LocalCalls(ServeOptions options);
  // Answers what is on its way with errors.
  ~LocalCalls();

  // To be called with the options that the engine is then loaded from.
  void watch(EngineOptions& options);
  // chat_template: its source; empty: none.
  void set_ready(LoadedEngine loaded, EngineOptions options, std::string chat_template);

  // POST of JSON to a path of the API, which may not ask for a stream. `answered` is called once,
  // on some thread. request_id: what the ids of the answer end with.
  void post(std::string path, std::string body, std::string request_id,
            std::function<void(http::Response)> answered);
  // What is on its way gets an answer with status 503.
  void cut_all();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace octavo
