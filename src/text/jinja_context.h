// One rendering: what it has used of its limits, where in the template it is, and the values it
// owns.
#pragma once

#include <cstdint>
#include <deque>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/jinja_limits.h"
#include "text/jinja_value.h"

namespace octavo::jinja {

// "NAME: MESSAGE at line LINE".
tl::unexpected<Error> located(ErrorCode code, std::string_view name, std::string_view message,
                              int line);

class Context {
 public:
  // name: of the template, for messages. now: seconds since 1970-01-01 00:00 of the clock to be
  // shown. stop: ends it at the next step, with the error cancelled.
  Context(std::string_view name, int64_t now, uint64_t max_steps = kMaxSteps,
          std::stop_token stop = {})
      : name_(name), now_(now), max_steps_(max_steps), stop_(std::move(stop)) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int64_t now() const { return now_; }
  void at_line(int line) { line_ = line; }
  int line() const { return line_; }

  tl::unexpected<Error> error(std::string_view message) const;        // template_error
  tl::unexpected<Error> unsupported(std::string_view message) const;  // unsupported
  tl::unexpected<Error> exceeded(std::string_view limit) const;       // resource_exhausted
  // The error for using an undefined value in a way that needs one.
  tl::unexpected<Error> undefined_used(const Undefined& value) const;

  Result<void> spend(uint64_t steps);
  Result<void> handle_bytes(uint64_t bytes);  // the steps of reading or copying so much text
  // Those of looking for so many places in a text and changing each.
  Result<void> handle_matches(uint64_t matches);
  Result<void> handle_key(const Value& key);  // those of its hash_key(), which is made only then
  Result<void> allocate(uint64_t bytes);

  // out += piece, within the limit of one string.
  Result<void> append(Text& out, const Text& piece);

  // Makers of values check and charge every limit.
  Result<Value> text(Text text);
  Result<Value> text(std::string_view bytes, bool is_template);
  Result<Value> sequence(Sequence::Kind kind, std::vector<Value> items);
  // A later entry of an equal key replaces the value and keeps the place, as in Python.
  Result<Value> dict(std::vector<std::pair<Value, Value>> entries);
  Result<Value> method(const Value& self, const Function& function);
  Result<LoopPtr> loop(SequencePtr items, int level);
  Result<Namespace*> make_namespace();

 private:
  std::string_view name_;
  int64_t now_;
  uint64_t max_steps_;
  std::stop_token stop_;
  int line_ = 1;
  uint64_t steps_ = 0;
  uint64_t memory_ = 0;
  std::deque<Namespace> namespaces_;
  std::deque<std::vector<Value>> seen_by_loops_;
};

// The elements of what a `for` can walk: characters, keys, items; the rest of an iterator, which is
// then used up.
Result<SequencePtr> elements(Context& context, const Value& value);

}  // namespace octavo::jinja
