// What plots are made of.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// "c3": the class of the i-th series, with " again" where the colours begin anew.
std::string series_class(size_t index);

// At most so many bytes of a name, escaped, whole characters.
std::string short_name(const std::string& name, size_t most);

std::string tick_text(double value);

// anchor: of SVG, "start", "middle" or "end".
std::string text_at(double x, double y, std::string_view anchor, const std::string& escaped,
                    std::string_view classes = "t");

}  // namespace octavo
