// Prompts of `octavo bench speculative`: the files of tests/data/speculative, put into the program
// when it is built.
#pragma once

#include <span>
#include <string_view>

namespace octavo {

struct SpeculativeText {
  // TASK-WHAT; ends in ".chat": the user's message of a conversation. Otherwise to be gone on from.
  std::string_view name;
  std::string_view text;
};

std::span<const SpeculativeText> speculative_texts();  // by name

}  // namespace octavo
