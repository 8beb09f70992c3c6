// What a template may use at most. Templates come with downloaded models and are as untrusted as
// the conversation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::jinja {

constexpr size_t kMaxSourceBytes = 512 << 10;  // published templates are below 40 KiB
constexpr int kMaxParseDepth = 100;            // brackets, signs, `not`s and blocks open at once
constexpr int kMaxExpressionDepth =
    200;                               // height of an expression's tree; `a + b + c` has 3 levels
constexpr size_t kMaxArguments = 255;  // of one call, and parameters of one macro

// Nested expressions, blocks and macro calls; about 1.5 KiB of stack each, 8 KiB with sanitizers.
constexpr int kMaxEvalDepth = 500;
// Lists in lists, in the input and made by a template.
constexpr int kMaxValueDepth = 100;
// Evaluated nodes, list items visited, 64-byte pieces of text handled. A conversation of 1000 short
// messages takes about 50,000.
constexpr uint64_t kMaxSteps = 5'000'000;
// All values made during one rendering together, freed or not.
constexpr uint64_t kMaxMemoryBytes = uint64_t{512} << 20;
constexpr size_t kMaxStringBytes = size_t{64} << 20;  // one string, and the output
constexpr size_t kMaxItems = 1'000'000;               // one list or dict
constexpr int64_t kMaxRange = 100'000;                // range(): the reference's own limit

}  // namespace octavo::jinja
