// How deep the expressions are that the parser builds, for its two source files alone.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "text/jinja_expression_parser.h"

namespace octavo::jinja {

inline int depth_of(const ExprPtr& expr) { return expr ? expr->depth : 0; }

template <class... Parts>
int deepest(const Parts&... parts) {
  return std::max({depth_of(parts)...});
}

inline int deepest_of(const std::vector<ExprPtr>& parts) {
  int depth = 0;
  for (const ExprPtr& part : parts) depth = std::max(depth, depth_of(part));
  return depth;
}

inline int deepest_of(const CallArguments& arguments) {
  int depth = deepest_of(arguments.positional);
  for (const auto& [name, value] : arguments.named) depth = std::max(depth, depth_of(value));
  return std::max({depth, depth_of(arguments.more_positional), depth_of(arguments.more_named)});
}

template <class Node>
Result<ExprPtr> ExpressionParser::make(int line, Node node, int deepest_part) {
  if (deepest_part >= kMaxExpressionDepth)
    return stream_.exceeded(
        fmt::format("an expression of more than {} levels", kMaxExpressionDepth));
  return std::make_unique<Expr>(Expr{line, deepest_part + 1, std::move(node)});
}

}  // namespace octavo::jinja
