#include "sampling/distribution.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

// q, of which a token has been drawn that is not put back.
Distribution without(Distribution q, TokenId drawn) {
  std::erase_if(q.entries, [&](const Distribution::Entry& e) { return e.id == drawn; });
  double total = 0;
  for (const Distribution::Entry& entry : q.entries) total += entry.probability;
  for (Distribution::Entry& entry : q.entries) entry.probability /= total;
  return q;
}

}  // namespace

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

Chosen choose_among(Distribution p, std::span<const TokenId> guesses, Distribution q,
                    std::span<const double> uniforms) {
  for (size_t i = 0; i < guesses.size() && !q.entries.empty(); ++i) {
    if (keeps_guess(p, q, guesses[i], uniforms[i])) return {guesses[i], static_cast<int>(i)};
    p = residual(p, q);
    q = without(std::move(q), guesses[i]);
  }
  const TokenId token = p.draw(uniforms.back());
  const auto found = std::find(guesses.begin(), guesses.end(), token);
  return {token, found == guesses.end() ? -1 : static_cast<int>(found - guesses.begin())};
}

}  // namespace octavo
