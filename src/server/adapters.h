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

  // max_loras: that may be loaded at once. model_names: the model's own, at least one.
  Adapters(int max_loras, std::vector<std::string> model_names)
      : max_loras_(max_loras), model_names_(std::move(model_names)) {}

  // Takes as long as reading the files does. replace: there may be one of this name, which the new
  // one takes the place of. Errors: 400 (a name that cannot be, is taken or loaded; too many; what
  // `load` says), 404 (files that are not there), 409 (another is being loaded).
  ApiResult<void> load(const LoraModule& module, bool replace, const Load& load);
  bool unload(std::string_view name);  // false: there is none

  // What a client's name of a model stands for: an adapter, or nullptr for the model itself, whose
  // first name is filled in where the client gave none. The one place where names are looked up.
  // Errors: 404, with the names that there are.
  ApiResult<Adapter> resolve(std::optional<std::string>& name) const;
  Adapter find(std::string_view name) const;  // nullptr: there is none
  std::vector<std::string> names() const;     // sorted

 private:
  ApiResult<void> check(const std::string& name, bool replace) const;
  std::vector<std::string> all_names() const;  // the model's and the adapters'

  const int max_loras_;
  const std::vector<std::string> model_names_;
  std::mutex loading_;        // they are loaded one at a time, so that what was checked stays so
  mutable std::mutex mutex_;  // of what follows
  std::map<std::string, Adapter, std::less<>> adapters_;
};

}  // namespace octavo
