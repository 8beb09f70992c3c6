// What a template may use at most. Templates come with downloaded models and are as untrusted as
// the conversation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::jinja {

constexpr size_t kMaxSourceBytes = 512 << 10;  // published templates are below 40 KiB
constexpr int kMaxParseDepth = 100;            // brackets, signs, `not`s and blocks open at once
constexpr int kMaxExpressionDepth = 200;       // height of a tree; `a + b + c` has 3 levels
constexpr size_t kMaxArguments = 255;          // of one call, and parameters of one macro

constexpr size_t kMaxUnpacked = 1000;  // arguments of one call, those of '*' and '**' too

// Nested expressions, blocks and macro calls; with sanitizers on, they fit 2 MiB of stack.
constexpr int kMaxEvalDepth = 500;
// Lists in lists, in the input and made by a template.
constexpr int kMaxValueDepth = 100;
// Evaluated nodes, list items visited, 64-byte pieces of text handled. A published template takes
// some tens for a short message; this many take about 0.2 s.
constexpr uint64_t kMaxSteps = 5'000'000;
// All values made during one rendering together, freed or not.
constexpr uint64_t kMaxMemoryBytes = uint64_t{512} << 20;
constexpr size_t kMaxStringBytes = size_t{64} << 20;  // one string, and the output
constexpr size_t kMaxItems = 1'000'000;               // one list or dict
constexpr int64_t kMaxRange = 100'000;                // range(): the reference's own limit

}  // namespace octavo::jinja
