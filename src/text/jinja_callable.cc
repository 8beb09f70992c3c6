#include "text/jinja_callable.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo::jinja {
namespace {

std::vector<std::string_view> parameter_names(const Function& function) {
  std::vector<std::string_view> names;
  std::string_view left = function.parameters;
  while (!left.empty()) {
    const size_t end = std::min(left.find(' '), left.size());
    names.push_back(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return names;
}

std::string_view parameter_name(const Call&, size_t parameter) {
  constexpr std::string_view kOrdinals[] = {"first", "second", "third"};
  return parameter < 3 ? kOrdinals[parameter] : "last";
}

}  // namespace

Result<Bound> bind(Context& context, const Function& function, const Arguments& arguments) {
  Bound bound;
  bound.all_ = &arguments;
  if (function.parameters == "*") return bound;
  const auto names = parameter_names(function);
  if (arguments.positional.size() > names.size())
    return context.error(
        fmt::format("'{}' takes at most {} arguments", function.name, names.size()));
  bound.slots_.resize(names.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    bound.slots_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto at =
        static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size())
      return context.error(fmt::format("'{}' has no parameter '{}'", function.name, name));
    if (bound.slots_[at])
      return context.error(fmt::format("'{}' got '{}' twice", function.name, name));
    bound.slots_[at] = &value;
  }
  for (size_t i = 0; i < function.required; ++i)
    if (!bound.slots_[i])
      return context.error(fmt::format("'{}' needs the argument '{}'", function.name, names[i]));
  return bound;
}

Result<Value> invoke(Context& context, const Function& function, const Value& self,
                     const Arguments& arguments) {
  OCTAVO_CHECK_OK(context.spend(1));
  if (!function.run)
    return context.unsupported(fmt::format("'{}' is not supported", function.name));
  OCTAVO_TRY(const Bound bound, bind(context, function, arguments));
  return function.run({context, self, bound});
}

const Function* find_function(std::span<const Function> table, std::string_view name) {
  for (const Function& function : table)
    if (function.name == name) return &function;
  return nullptr;
}

Result<int64_t> integer_or(const Call& call, size_t parameter, int64_t otherwise) {
  if (!call.arguments.given(parameter)) return otherwise;
  const Value& value = *call.arguments[parameter];
  if (const auto integer = as_integer(value)) return *integer;
  return call.context.error(fmt::format("the {} argument must be an int, not a {}",
                                        parameter_name(call, parameter), type_name(value)));
}

bool boolean_or(const Call& call, size_t parameter, bool otherwise) {
  const Value* value = call.arguments[parameter];
  return value ? truthy(*value) : otherwise;
}

Result<const Text*> text_argument(const Call& call, size_t parameter) {
  const Value& value = *call.arguments[parameter];
  if (const Text* text = as_text(value)) return text;
  if (const auto* missing = get_if<Undefined>(value)) return call.context.undefined_used(*missing);
  return call.context.error(fmt::format("the {} argument must be a str, not a {}",
                                        parameter_name(call, parameter), type_name(value)));
}

}  // namespace octavo::jinja
