#include "bench/answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace octavo {
namespace {

constexpr std::string_view kDefaultHeadline[] = {"output_throughput", "median_ttft_ms",
                                                 "median_tpot_ms"};

// "Output tokens per second"; names that are capitals already stay as they are.
std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

class Answers {
 public:
  Answers(const BenchResult& result, const std::vector<ComparisonRow>& rows)
      : result_(result), rows_(rows) {}

  std::vector<std::string> all() {
    for (const ComparisonRow* row : headline_rows(result_, rows_)) {
      if (result_.runs.size() == 1)
        out_.push_back(alone(*row));
      else if (has_lines(result_))
        add_ends(*row);
      else if (result_.runs.size() == 2)
        out_.push_back(pair(*row, 0, 1));
      else
        out_.push_back(best_of(*row));
    }
    return std::move(out_);
  }

 private:
  std::string value(const ComparisonRow& row, size_t run) const {
    return with_unit(row.values[run], row.figure);
  }

  std::string text(size_t run) const { return run_text(result_, result_.runs[run]); }

  std::string alone(const ComparisonRow& row) const {
    const std::vector<double> rounds = round_values(result_.runs[0], row.figure.name);
    std::string spread;
    if (rounds.size() > 1) {
      const auto [low, high] = std::ranges::minmax(rounds);
      spread = fmt::format(" ({} to {} in {} rounds)", format_value(low, row.figure.unit),
                           format_value(high, row.figure.unit), rounds.size());
    }
    return fmt::format("{}: {}{}.", capital(row.figure.label), value(row, 0), spread);
  }

  std::string change(const ComparisonRow& row, size_t run) const {
    return row.changes[run] ? ": " + change_text(*row.changes[run]) : "";
  }

  std::string pair(const ComparisonRow& row, size_t base, size_t run) const {
    return fmt::format("{}: {} with {}, {} with {}{}.", capital(row.figure.label), value(row, run),
                       text(run), value(row, base), text(base), change(row, run));
  }

  std::string pair_at_x(const ComparisonRow& row, size_t run) const {
    const size_t base = baseline_of(result_, run);
    const RunResult &one = result_.runs[run], &other = result_.runs[base];
    return fmt::format("{} at {:g} {}: {} {}, {} {}{}.", capital(row.figure.label),
                       one.x.value_or(0), result_.x_label, value(row, run), one.series,
                       value(row, base), other.series, change(row, run));
  }

  // Of two lines: at the least and the most x.
  void add_ends(const ComparisonRow& row) {
    std::vector<size_t> others;
    for (size_t i = 0; i < result_.runs.size(); ++i)
      if (baseline_of(result_, i) != i) others.push_back(i);
    if (others.empty()) return;
    const auto by_x = [&](size_t i) { return result_.runs[i].x.value_or(0); };
    const auto [least, most] = std::ranges::minmax_element(others, {}, by_x);
    out_.push_back(pair_at_x(row, *most));
    if (*least != *most) out_.push_back(pair_at_x(row, *least));
  }

  bool is_better(const ComparisonRow& row, size_t a, size_t b) const {
    if (!row.values[a] || !row.values[b]) return row.values[a].has_value();
    return row.figure.better == Better::lower ? *row.values[a] < *row.values[b]
                                              : *row.values[a] > *row.values[b];
  }

  // The best of many, what cannot be told from it, and what it is beside the first.
  std::string best_of(const ComparisonRow& row) const {
    size_t best = 0;
    for (size_t i = 1; i < result_.runs.size(); ++i)
      if (is_better(row, i, best)) best = i;
    std::string out = fmt::format("{}: best with {}, {}", capital(row.figure.label), text(best),
                                  value(row, best));
    if (best != 0 && row.values[0] && row.changes[best])
      out +=
          fmt::format("; {} with {}: {}", value(row, 0), text(0), change_text(*row.changes[best]));
    if (best == 0 && round_values(result_.runs[0], row.figure.name).size() == 1)
      out += " in one round, which may be noise";
    return out + tied_with(row, best) + ".";
  }

  std::string tied_with(const ComparisonRow& row, size_t best) const {
    std::vector<std::string> tied;
    for (size_t i = 0; i < result_.runs.size(); ++i) {
      if (i == best) continue;
      const auto difference = change_between_runs(result_, best, i, row.figure.name);
      if (difference && difference->call == Call::noise) tied.push_back(text(i));
    }
    if (tied.empty()) return "";
    if (tied.size() + 1 == result_.runs.size()) return "; no other differs from it beyond noise";
    return fmt::format("; no difference beyond noise from it: {}", fmt::join(tied, ", "));
  }

  const BenchResult& result_;
  const std::vector<ComparisonRow>& rows_;
  std::vector<std::string> out_;
};

}  // namespace

std::string run_text(const BenchResult& result, const RunResult& run) {
  if (!run.x || result.x_label.empty()) return run.name;
  return fmt::format("{:g} {}", *run.x, result.x_label);
}

std::vector<const ComparisonRow*> headline_rows(const BenchResult& result,
                                                const std::vector<ComparisonRow>& rows) {
  std::vector<const ComparisonRow*> headline;
  const auto add = [&](std::string_view name) {
    if (const ComparisonRow* row = find_row(rows, name)) headline.push_back(row);
  };
  for (const std::string& name : result.headline) add(name);
  if (result.headline.empty()) std::ranges::for_each(kDefaultHeadline, add);
  return headline;
}

std::vector<std::string> answers(const BenchResult& result,
                                 const std::vector<ComparisonRow>& rows) {
  return result.answer.empty() ? Answers(result, rows).all() : result.answer;
}

std::vector<std::string> answers(const BenchResult& result) {
  return answers(result, compare_runs(result));
}

}  // namespace octavo
