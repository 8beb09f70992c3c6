#include "sampling/distribution.h"

#include <algorithm>

namespace octavo {

double Distribution::of(TokenId id) const {
  const auto found = std::lower_bound(entries.begin(), entries.end(), id,
                                      [](const Entry& e, TokenId other) { return e.id < other; });
  return found != entries.end() && found->id == id ? found->probability : 0;
}

TokenId Distribution::draw(double u) const {
  double below = 0;
  for (const Entry& entry : entries)
    if ((below += entry.probability) > u) return entry.id;
  return entries.back().id;
}

// Both are in the order of ids.
Distribution residual(const Distribution& p, const Distribution& q) {
  Distribution left;
  double total = 0;
  auto other = q.entries.begin();
  for (const Distribution::Entry& entry : p.entries) {
    while (other != q.entries.end() && other->id < entry.id) ++other;
    const bool in_both = other != q.entries.end() && other->id == entry.id;
    const double rest = entry.probability - (in_both ? other->probability : 0);
    if (rest <= 0) continue;
    left.entries.push_back({entry.id, rest});
    total += rest;
  }
  if (left.entries.empty()) return p;
  for (Distribution::Entry& entry : left.entries) entry.probability /= total;
  return left;
}

bool keeps_guess(const Distribution& p, const Distribution& q, TokenId guess, double u) {
  return u * q.of(guess) < p.of(guess);
}

}  // namespace octavo
