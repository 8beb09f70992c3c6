// Numbers that must not be mixed up: each is its own type and converts to nothing.
#pragma once

#include <cstdint>
#include <type_traits>

namespace octavo {

enum class TokenId : int32_t {};  // row of the vocabulary
enum class BlockId : int32_t {};  // KV block of a pool
enum class SeqId : int64_t {};    // running sequence

constexpr BlockId kNoBlock{-1};

template <class Id>
requires std::is_enum_v<Id>
constexpr auto raw(Id id) { return static_cast<std::underlying_type_t<Id>>(id); }

}  // namespace octavo
