// The LoRA adapters that a server has loaded, by the names that clients ask for. Who has taken one
// keeps it, also when it is unloaded or replaced meanwhile.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/lora.h"
#include "server/api_error.h"
#include "server/serve_options.h"

namespace octavo {

class Adapters {
 public:
  using Adapter = std::shared_ptr<const LoraAdapter>;
  using Load = std::function<Result<Adapter>(const std::string& path)>;

  // max_loras: that may be loaded at once. taken: names that are the model's.
  Adapters(int max_loras, std::vector<std::string> taken)
      : max_loras_(max_loras), taken_(std::move(taken)) {}

  // Takes as long as reading the files does. replace: there may be one of this name, which the new
  // one takes the place of. Errors: 400 (a name that cannot be, is taken or loaded; too many; what
  // `load` says), 404 (files that are not there), 409 (another is being loaded).
  ApiResult<void> load(const LoraModule& module, bool replace, const Load& load);
  bool unload(std::string_view name);  // false: there is none

  Adapter find(std::string_view name) const;  // nullptr: there is none
  std::vector<std::string> names() const;     // sorted

 private:
  ApiResult<void> check(const std::string& name, bool replace) const;

  const int max_loras_;
  const std::vector<std::string> taken_;
  std::mutex loading_;        // they are loaded one at a time, so that what was checked stays so
  mutable std::mutex mutex_;  // of what follows
  std::map<std::string, Adapter, std::less<>> adapters_;
};

}  // namespace octavo
