#include "spec/siblings.h"

#include <algorithm>
#include <cmath>

namespace octavo {

std::vector<SiblingGuess> siblings_of(std::span<const float> logits, int place, TokenId taken,
                                      int count, double& probability) {
  const float largest = *std::ranges::max_element(logits);
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit - largest));
  const auto probability_of = [&](size_t id) {
    return std::exp(double(logits[id] - largest)) / total;
  };
  const auto itself = static_cast<size_t>(raw(taken));
  probability = probability_of(itself);
  std::vector<SiblingGuess> best;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (id == itself) continue;
    if (std::cmp_equal(best.size(), count) && logits[id] <= logits[size_t(raw(best.back().token))])
      continue;
    if (std::cmp_equal(best.size(), count)) best.pop_back();
    const auto after = std::find_if(best.begin(), best.end(), [&](const SiblingGuess& other) {
      return logits[id] > logits[static_cast<size_t>(raw(other.token))];
    });
    best.insert(after, {place, TokenId{static_cast<int>(id)}, 0});
  }
  for (SiblingGuess& guess : best)
    guess.probability = probability_of(static_cast<size_t>(raw(guess.token)));
  return best;
}

void add_siblings(DraftTask& task, std::span<const double> probabilities,
                  std::span<const SiblingGuess> siblings) {
  std::vector<double> reached = {1};  // that the guess at a place is looked at
  for (const double probability : probabilities) reached.push_back(reached.back() * probability);
  std::vector<std::pair<double, const SiblingGuess*>> all;  // nullptr: of the chain
  for (size_t place = 0; place < task.draft.size(); ++place)
    all.emplace_back(reached[place + 1], nullptr);
  for (const SiblingGuess& guess : siblings)
    all.emplace_back(reached[static_cast<size_t>(guess.place)] * guess.probability, &guess);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  all.resize(std::min(all.size(), static_cast<size_t>(task.max_tokens)));
  const auto in_chain = static_cast<size_t>(
      std::ranges::count(all, nullptr, &std::pair<double, const SiblingGuess*>::second));
  task.draft.resize(in_chain);
  for (const auto& [probability, guess] : all)
    if (guess && std::cmp_less_equal(guess->place, in_chain))
      add_draft(task.draft, task.parents, guess->token, guess->place - 1);
}

}  // namespace octavo
