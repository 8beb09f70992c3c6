#include "base/hash.h"

#include <xxhash.h>

#include <new>

namespace octavo {

struct Hasher::State {
  // Made by the library, which knows the alignment it needs.
  XXH3_state_t* state = XXH3_createState();
  ~State() { XXH3_freeState(state); }
};

uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Hasher::Hasher() : state_(std::make_unique<State>()) {
  if (!state_->state) throw std::bad_alloc();
  XXH3_128bits_reset(state_->state);
}

Hasher::~Hasher() = default;

void Hasher::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->state, bytes.data(), bytes.size());
}

// The 64-bit hash is another function of the same state.
uint64_t Hasher::result64() const { return XXH3_64bits_digest(state_->state); }

Hash128 Hasher::result128() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->state);
  return {hash.high64, hash.low64};
}

}  // namespace octavo
