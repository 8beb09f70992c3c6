#include "server/adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "formats/quote.h"

namespace octavo {
namespace {

constexpr size_t kMaxNameBytes = 256;

tl::unexpected<ApiError> refuse(std::string message, std::string_view param) {
  return tl::make_unexpected(ApiError{.message = std::move(message), .param = std::string(param)});
}

bool is_possible(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::none_of(name.begin(), name.end(),
                      [](unsigned char c) { return c <= ' ' || c == 127; });
}

bool is_one_of(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

ApiError load_error(const Error& error) {
  const bool absent = error.code == ErrorCode::not_found || error.code == ErrorCode::io_error;
  return {.status = absent ? 404 : 400, .message = error.message, .param = "lora_path"};
}

}  // namespace

ApiResult<void> Adapters::check(const std::string& name, bool replace) const {
  if (!is_possible(name))
    return refuse(fmt::format("an adapter cannot be called {}: names have 1 to {} bytes, and no "
                              "spaces or control characters",
                              quote(name), kMaxNameBytes),
                  "lora_name");
  if (is_one_of(model_names_, name))
    return refuse(fmt::format("{} is the model's own name", quote(name)), "lora_name");
  const std::lock_guard lock(mutex_);
  const bool is_loaded = adapters_.contains(name);
  if (is_loaded && !replace)
    return refuse(fmt::format("there is an adapter {} already; unload it, or set load_inplace to "
                              "replace it",
                              quote(name)),
                  "lora_name");
  if (!is_loaded && std::ssize(adapters_) >= max_loras_)
    return refuse(
        fmt::format("{} adapters are loaded, which is --max-loras; unload one", adapters_.size()),
        "lora_name");
  return {};
}

ApiResult<void> Adapters::load(const LoraModule& module, bool replace, const Load& load) {
  const std::unique_lock loading(loading_, std::try_to_lock);
  if (!loading)
    return tl::make_unexpected(ApiError{.status = 409,
                                        .message = "another adapter is being loaded; try again "
                                                   "when that is done",
                                        .code = "lora_loading"});
  OCTAVO_CHECK_OK(check(module.name, replace));
  auto adapter = load(module.path);
  if (!adapter) return tl::make_unexpected(load_error(adapter.error()));
  const std::lock_guard lock(mutex_);
  adapters_[module.name] = std::move(*adapter);
  return {};
}

bool Adapters::unload(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = adapters_.find(name);
  if (found == adapters_.end()) return false;
  adapters_.erase(found);
  return true;
}

ApiResult<Adapters::Adapter> Adapters::resolve(std::optional<std::string>& name) const {
  if (!name) name = model_names_.front();
  if (is_one_of(model_names_, *name)) return nullptr;
  if (Adapter adapter = find(*name)) return adapter;
  return tl::make_unexpected(
      ApiError{.status = 404,
               .message = fmt::format("there is no model {}; served here: {}", quote(*name),
                                      fmt::join(all_names(), ", ")),
               .param = "model",
               .code = "model_not_found"});
}

std::vector<std::string> Adapters::all_names() const {
  std::vector<std::string> all = model_names_;
  for (std::string& name : names()) all.push_back(std::move(name));
  return all;
}

Adapters::Adapter Adapters::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = adapters_.find(name);
  return found == adapters_.end() ? nullptr : found->second;
}

std::vector<std::string> Adapters::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, adapter] : adapters_) names.push_back(name);
  return names;
}

}  // namespace octavo
