// The chains of parts that a tokenizer.json is made of: normalizer, pre_tokenizer, decoder,
// post_processor.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/token_pipeline_spec.h"
#include "formats/json_section.h"

namespace octavo::tokenizer_json {

// One part of a chain, with its place for messages.
struct Step {
  std::string type;
  JsonSection section;
};

// The parts of root's `field` in order, with sequences taken apart; none if it is absent. `list`:
// the field that holds a sequence's parts.
Result<std::vector<Step>> steps_of(const JsonSection& root, const char* field, const char* list);

tl::unexpected<Error> unknown_step(const Step& step);

Result<bool> flag(const JsonSection& section, const char* field, bool otherwise);
Result<std::string> text(const JsonSection& section, const char* field);

// {"Regex": "..."} or {"String": "..."}
Result<TextPattern> pattern_of(const JsonSection& section);

}  // namespace octavo::tokenizer_json
