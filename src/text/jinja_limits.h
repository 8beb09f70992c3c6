// What a template may use at most. Templates come with downloaded models and are as untrusted as
// the conversation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::jinja {

constexpr size_t kMaxSourceBytes = 512 << 10;  // published templates are below 40 KiB
constexpr int kMaxParseDepth = 100;            // brackets, unary operators and blocks open at once
constexpr int kMaxExpressionDepth =
    200;                               // height of an expression's tree; `a + b + c` has height 3
constexpr size_t kMaxArguments = 255;  // of one call
constexpr int kMaxEvalDepth =
    500;  // nested expressions, blocks and macro calls; about 1.5 KB of stack each
constexpr int kMaxValueDepth = 100;  // lists in lists, in the input and made by a template
constexpr uint64_t kMaxSteps =
    20'000'000;  // evaluated nodes, list items visited, 64-byte pieces of text handled
constexpr uint64_t kMaxMemoryBytes = 512u
                                     << 20;   // everything made during one rendering, freed or not
constexpr size_t kMaxStringBytes = 64 << 20;  // one string, and the output
constexpr size_t kMaxItems = 1'000'000;       // one list or dict
constexpr int64_t kMaxRange = 100'000;        // range(): the reference's own limit

}  // namespace octavo::jinja
