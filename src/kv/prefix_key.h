// The name of a cached block: whose it is, and which tokens it and all blocks before it hold.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "core/ids.h"

namespace octavo {

// Prefixes are found only under the key they were computed for: both parts equal, each by itself.
// The parts are never joined to one string, in which a salt could pass for an adapter.
struct PrefixKey {
  std::string salt;     // whose it is; tenants with different salts share nothing
  std::string adapter;  // the identity of its weights, not the name they were loaded under

  auto operator<=>(const PrefixKey&) const = default;
};

// Content hashes of 128 bits, equal in every process on machines of one byte order. Those of a
// sequence are a chain: root_hash(key), then for each full block that of the block before it and
// its own tokens.
Hash128 root_hash(const PrefixKey& key);
Hash128 block_hash(const Hash128& before, std::span<const TokenId> tokens);

// Of each full block of `tokens`. REQUIRES: block_size >= 1.
std::vector<Hash128> block_hashes(const PrefixKey& key, std::span<const TokenId> tokens,
                                  int block_size);

}  // namespace octavo
