// A piece of a rendered chat prompt and where it comes from.
#pragma once

#include <string>

namespace octavo {

// is_template: written by the model's template; else user content, in which control tokens are
// ordinary text (I11).
struct TextSpan {
  std::string text;
  bool is_template;
};

}  // namespace octavo
