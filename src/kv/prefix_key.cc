#include "kv/prefix_key.h"

#include <string_view>

namespace octavo {
namespace {

void add_part(Hasher& hasher, char tag, std::string_view part) {
  hasher.add_value(tag);
  hasher.add_value(static_cast<uint64_t>(part.size()));
  hasher.add(std::as_bytes(std::span(part)));
}

}  // namespace

Hash128 root_hash(const PrefixKey& key) {
  Hasher hasher;
  add_part(hasher, 's', key.salt);
  add_part(hasher, 'a', key.adapter);
  return hasher.result128();
}

Hash128 block_hash(const Hash128& before, std::span<const TokenId> tokens) {
  Hasher hasher;
  hasher.add_value(before.high);
  hasher.add_value(before.low);
  hasher.add(std::as_bytes(tokens));
  return hasher.result128();
}

std::vector<Hash128> block_hashes(const PrefixKey& key, std::span<const TokenId> tokens,
                                  int block_size) {
  const auto size = static_cast<size_t>(block_size);
  std::vector<Hash128> hashes;
  hashes.reserve(tokens.size() / size);
  Hash128 before = root_hash(key);
  for (; tokens.size() >= size; tokens = tokens.subspan(size))
    hashes.push_back(before = block_hash(before, tokens.first(size)));
  return hashes;
}

}  // namespace octavo
