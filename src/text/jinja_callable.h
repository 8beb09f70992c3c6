// Filters, tests, methods and globals are rows of tables: a name, parameters as Python declares
// them, and what to do.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja_context.h"
#include "text/jinja_value.h"

namespace octavo::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  bool content_names = false;  // '**' gave names that the conversation wrote
};

// Arguments put in the order of the parameters.
class Bound {
 public:
  const Value* operator[](size_t parameter) const {
    return slots_[parameter];
  }  // null if not given
  bool given(size_t parameter) const { return slots_[parameter] && !is<None>(*slots_[parameter]); }
  const Arguments& all() const { return *all_; }

 private:
  friend Result<Bound> bind(Context&, const Function&, const Arguments&);
  std::vector<const Value*> slots_;
  const Arguments* all_ = nullptr;
};

// self: the filter's input, the tested value, the method's object; undefined for globals.
struct Call {
  Context& context;
  const Value& self;
  const Bound& arguments;
};

// A function that the reference has and this interpreter has not is a row without `run`: it is
// defined, and calling it is refused by name.
struct Function {
  std::string_view name;
  std::string_view parameters;  // names between spaces; "*": takes what it gets
  size_t required;              // how many of them, from the left, have no default
  Result<Value> (*run)(const Call&) = nullptr;
  bool mutates =
      false;  // a method that would change its object: the sandbox gives an undefined value instead
};

Result<Bound> bind(Context& context, const Function& function, const Arguments& arguments);
// Binds the arguments and runs the function. The arguments outlive the call.
Result<Value> invoke(Context& context, const Function& function, const Value& self,
                     const Arguments& arguments);
const Function* find_function(std::span<const Function> table, std::string_view name);

// Readers of arguments, with the error that names the parameter.
Result<int64_t> integer_or(const Call& call, size_t parameter, int64_t otherwise);
bool boolean_or(const Call& call, size_t parameter, bool otherwise);
// REQUIRES: the parameter is given.
Result<const Text*> text_argument(const Call& call, size_t parameter);

const Function* find_filter(std::string_view name);
const Function* find_test(std::string_view name);
// What `object.name` is besides items: methods of strings and dicts. Names of Python's that are not
// done here have an entry whose run is null.
const Function* find_method(const Value& object, std::string_view name);
std::span<const Function> text_methods();
std::span<const Function> global_functions();

}  // namespace octavo::jinja
