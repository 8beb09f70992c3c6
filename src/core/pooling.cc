#include "core/pooling.h"

#include <algorithm>
#include <array>
#include <utility>

namespace octavo {
namespace {

constexpr std::array kNames = {
    std::pair{std::string_view("mean"), PoolingType::mean},
    std::pair{std::string_view("cls"), PoolingType::cls},
    std::pair{std::string_view("last"), PoolingType::last},
};

}  // namespace

std::string_view name(PoolingType type) { return kNames[static_cast<size_t>(type)].first; }

std::optional<PoolingType> pooling_from_name(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name, [](const auto& n) { return n.first; });
  return found == kNames.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace octavo
