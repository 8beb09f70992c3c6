// Numbers out of the text that Prometheus scrapes.
#pragma once

#include <optional>
#include <string_view>

namespace octavo {

// The sum over all labels of the samples of one name; nothing if there is none.
std::optional<double> metric_sum(std::string_view text, std::string_view name);

}  // namespace octavo
