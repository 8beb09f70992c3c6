#include "formats/tokenizer_json_steps.h"

#include <fmt/format.h>

#include "formats/quote.h"

namespace octavo::tokenizer_json {
namespace {

using nlohmann::json;

constexpr size_t kMaxSteps = 64;
constexpr int kMaxNesting = 8;

// The parts in order, with sequences taken apart. `list`: the field that holds a sequence's parts.
Result<void> flatten(const JsonSection& section, const char* list, int nesting,
                     std::vector<Step>& out) {
  const json* type = section.find("type");
  if (!type || !type->is_string()) return section.error("type", "is missing or no string");
  if (*type != "Sequence") {
    if (out.size() == kMaxSteps)
      return section.error("type", "comes after too many parts", ErrorCode::unsupported);
    out.push_back({type->get<std::string>(), section});
    return {};
  }
  const json* parts = section.find(list);
  if (!parts || !parts->is_array()) return section.error(list, "is missing or no list");
  if (nesting == kMaxNesting)
    return section.error(list, "is nested too deep", ErrorCode::unsupported);
  for (const json& part : *parts) {
    if (!part.is_object()) return section.error(list, "has an entry that is no object");
    OCTAVO_CHECK_OK(flatten(JsonSection(part, section.file(), section.prefix() + list + "."), list,
                            nesting + 1, out));
  }
  return {};
}

}  // namespace

Result<std::vector<Step>> steps_of(const JsonSection& root, const char* field, const char* list) {
  std::vector<Step> steps;
  const json* value = root.find(field);
  if (!value) return steps;
  if (!value->is_object()) return root.error(field, "is not an object");
  OCTAVO_CHECK_OK(
      flatten(JsonSection(*value, root.file(), fmt::format("{}.", field)), list, 0, steps));
  return steps;
}

tl::unexpected<Error> unknown_step(const Step& step) {
  return step.section.error("type",
                            fmt::format("is {}, which is not supported here", quote(step.type)),
                            ErrorCode::unsupported);
}

Result<bool> flag(const JsonSection& section, const char* field, bool otherwise) {
  OCTAVO_TRY(const auto value, section.find_bool(field));
  return value.value_or(otherwise);
}

Result<std::string> text(const JsonSection& section, const char* field) {
  OCTAVO_TRY(auto value, section.find_string(field));
  if (!value) return section.error(field, "is missing");
  return *value;
}

Result<TextPattern> pattern_of(const JsonSection& section) {
  const json* pattern = section.find("pattern");
  if (pattern && pattern->is_object() && pattern->size() == 1) {
    const auto only = pattern->begin();
    if (only->is_string() && only.key() == "Regex")
      return TextPattern{only->get<std::string>(), true};
    if (only->is_string() && only.key() == "String")
      return TextPattern{only->get<std::string>(), false};
  }
  return section.error("pattern", "is no Regex and no String");
}

}  // namespace octavo::tokenizer_json
