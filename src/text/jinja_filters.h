// The tables of filters, by kind of what they work on.
#pragma once

#include <span>

#include "text/jinja_callable.h"

namespace octavo::jinja {

std::span<const Function> text_filters();    // trim, upper, replace, tojson, ...
std::span<const Function> number_filters();  // int, float, round, abs
std::span<const Function> sequence_filters();
std::span<const Function> group_filters();  // join, first, sort, map, select, ...

}  // namespace octavo::jinja
