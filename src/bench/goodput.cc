#include "bench/goodput.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "bench/number_text.h"
#include "formats/quote.h"

namespace octavo {
namespace {

constexpr std::array<std::string_view, 4> kMeasures = {"ttft", "tpot", "itl", "e2el"};
constexpr double kLeastMs = 0.001, kMostMs = 1e9;

std::optional<double> largest_gap_s(const RequestRecord& request) {
  std::optional<double> largest;
  for (size_t i = 1; i < request.token_s.size(); ++i)
    largest = std::max(largest.value_or(0), request.token_s[i] - request.token_s[i - 1]);
  return largest;
}

std::optional<double> measure_s(const RequestRecord& request, std::string_view measure) {
  if (request.token_s.empty()) return std::nullopt;
  if (measure == "ttft") return request.ttft_s();
  if (measure == "tpot") return request.tpot_s();
  if (measure == "itl") return largest_gap_s(request);
  return request.e2el_s();
}

}  // namespace

Result<std::map<std::string, double>> parse_goodput(std::string_view text) {
  std::map<std::string, double> bounds;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" ,"));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    const size_t colon = std::min(word.find(':'), word.size());
    const std::string_view measure = word.substr(0, colon);
    const auto bound =
        number_between(word.substr(std::min(colon + 1, word.size())), kLeastMs, kMostMs);
    if (colon == word.size() ||
        std::find(kMeasures.begin(), kMeasures.end(), measure) == kMeasures.end())
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} is not MEASURE:MS, where the measure is ttft, tpot, itl or e2el "
                              "and its bound in milliseconds",
                              quote(word)));
    if (!bound)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("the bound of {} is no number of milliseconds from {} to {:.0f}",
                              quote(word), kLeastMs, kMostMs));
    if (!bounds.emplace(measure, *bound).second)
      return fail(ErrorCode::invalid_argument, fmt::format("'{}' is given twice", measure));
  }
  return bounds;
}

bool is_good(const RequestRecord& request, const std::map<std::string, double>& bounds_ms) {
  if (!request.completed()) return false;
  return std::all_of(bounds_ms.begin(), bounds_ms.end(), [&](const auto& bound) {
    return measure_s(request, bound.first).value_or(0) * 1e3 <= bound.second;
  });
}

}  // namespace octavo
