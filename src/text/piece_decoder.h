// From a token's spelling to the bytes that it adds to a text, as a tokenizer.json says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/token_pipeline_spec.h"

namespace octavo {

class PieceDecoder {
 public:
  // Errors: unsupported (an order of steps that cannot be done token by token).
  static Result<PieceDecoder> create(std::vector<decoder::Step> steps, bool spaces_between);

  // What one text needs to know of what came before.
  struct State {
    bool first = true;    // no token yet
    size_t stripped = 0;  // characters of its beginning that are gone
    bool stripping = true;
  };
  // In the middle of a text: nothing is cut off that only its beginning lacks.
  static State inside() { return {.first = false, .stripped = 0, .stripping = false}; }

  // Perhaps only part of a character.
  std::string decode(std::string_view spelling, State& state) const;

 private:
  struct Apply;
  std::vector<decoder::Step> steps_;
  bool spaces_between_ = false;
};

}  // namespace octavo
