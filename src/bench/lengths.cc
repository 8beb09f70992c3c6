#include "bench/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/number_text.h"
#include "formats/quote.h"

namespace octavo {
namespace {

constexpr std::string_view kForms =
    "N, LOW-HIGH, SHARE%:LOW-HIGH+SHARE%:LOW-HIGH or lognormal:MEAN:MAX[:SIGMA], in tokens";
constexpr size_t kMaxParts = 64;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const size_t at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

tl::unexpected<Error> bad_lengths(std::string_view why) {
  return fail(ErrorCode::invalid_argument, std::string(why));
}

std::optional<LengthPart> parse_range(std::string_view text) {
  const size_t dash = text.find('-');
  const auto low = number_between(text.substr(0, dash), 1, kMaxLength);
  const auto high =
      dash == std::string_view::npos ? low : number_between(text.substr(dash + 1), 1, kMaxLength);
  if (!low || !high) return std::nullopt;
  return LengthPart{1, *low, *high};
}

std::optional<LengthPart> parse_part(std::string_view text) {
  const size_t percent = text.find("%:");
  if (percent == std::string_view::npos) return parse_range(text);
  const auto share = number_between(text.substr(0, percent), 0.0, 100.0);
  auto part = parse_range(text.substr(percent + 2));
  if (!share || !part) return std::nullopt;
  part->share = *share / 100;
  return part;
}

Result<Lengths> parse_mixture(std::string_view text) {
  const auto pieces = split(text, '+');
  if (pieces.size() > kMaxParts) return bad_lengths(fmt::format("has over {} parts", kMaxParts));
  std::vector<LengthPart> parts;
  for (const std::string_view piece : pieces) {
    const auto part = parse_part(piece);
    if (!part) return bad_lengths(fmt::format("is none of {}", kForms));
    parts.push_back(*part);
  }
  return Lengths::mixture(std::move(parts));
}

Result<Lengths> parse_lognormal(std::string_view text) {
  const auto pieces = split(text, ':');
  const auto mean = number_of<double>(pieces[0]);
  const auto max = pieces.size() > 1 ? number_of<int>(pieces[1]) : std::nullopt;
  const auto sigma = pieces.size() > 2 ? number_of<double>(pieces[2]) : std::optional(1.0);
  if (pieces.size() > 3 || !mean || !max || !sigma)
    return bad_lengths(fmt::format("is none of {}", kForms));
  return Lengths::lognormal(*mean, *max, *sigma);
}

double normal_below(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

// The mean of min(X, max) for X log-normal.
double cut_mean(double mu, double sigma, double max) {
  const double z = (std::log(max) - mu) / sigma;
  return std::exp(mu + sigma * sigma / 2) * normal_below(z - sigma) + max * (1 - normal_below(z));
}

// The mean grows with mu, so that halving an interval finds it.
double mu_for(double mean, double sigma, double max) {
  double low = -60, high = std::log(max) + 10 * sigma;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (cut_mean(middle, sigma, max) < mean ? low : high) = middle;
  }
  return low;
}

bool in_order(const LengthPart& part) {
  return part.low >= 1 && part.low <= part.high && part.high <= kMaxLength && part.share >= 0;
}

}  // namespace

Result<Lengths> Lengths::parse(std::string_view key, std::string_view text) {
  constexpr std::string_view kLogNormal = "lognormal:";
  auto lengths = text.starts_with(kLogNormal) ? parse_lognormal(text.substr(kLogNormal.size()))
                                              : parse_mixture(text);
  if (lengths) return lengths;
  return bad_lengths(
      fmt::format("'{}' is {}, which {}", key, quote(text), lengths.error().message));
}

Result<Lengths> Lengths::mixture(std::vector<LengthPart> parts) {
  double sum = 0;
  for (const LengthPart& part : parts) {
    if (!in_order(part))
      return bad_lengths(fmt::format("has a range from {} to {}; ranges rise within 1 to {}",
                                     part.low, part.high, kMaxLength));
    sum += part.share;
  }
  if (!(std::abs(sum - 1) < 1e-6))
    return bad_lengths(fmt::format("has shares that add up to {:.6g} %, not to 100 %", sum * 100));
  return Lengths(std::move(parts), 0, 0);
}

Result<Lengths> Lengths::lognormal(double mean, int max, double sigma) {
  if (!(mean > 1 && mean < max && max <= kMaxLength))
    return bad_lengths(
        fmt::format("has a mean of {:.6g} and a maximum of {}; it takes 1 < mean < "
                    "maximum <= {}",
                    mean, max, kMaxLength));
  if (!(sigma > 0 && sigma <= 10))
    return bad_lengths(fmt::format("has a sigma of {:.6g}, outside 0 to 10", sigma));
  return Lengths({LengthPart{1, 1, max}}, mu_for(mean, sigma, max), sigma);
}

int Lengths::draw(Draws& draws) const {
  if (sigma_ > 0) {
    const double length = std::round(std::exp(mu_ + sigma_ * draws.normal()));
    return static_cast<int>(std::clamp<double>(length, 1, parts_[0].high));
  }
  double place = draws.uniform();
  for (const LengthPart& part : parts_) {
    if (place < part.share) return draws.between(part.low, part.high);
    place -= part.share;
  }
  return draws.between(parts_.back().low, parts_.back().high);  // shares may add up to a bit less
}

int Lengths::max() const {
  int most = 0;
  for (const LengthPart& part : parts_) most = std::max(most, part.high);
  return most;
}

}  // namespace octavo
