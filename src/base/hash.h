// Fast hashes of bytes (XXH3) for finding and for noticing damage; no defence against an adversary.
// Equal on every machine with the same byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace octavo {

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const Hash128&) const = default;
};

uint64_t hash64(std::span<const std::byte> bytes);

// The hash of what is added, piece by piece; where the pieces begin and end does not matter.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void add(std::span<const std::byte> bytes);
  template <class T>
  void add_value(const T& value) requires std::is_integral_v<T> {
    add(std::as_bytes(std::span(&value, 1)));
  }
  uint64_t result64() const;
  Hash128 result128() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo
