#include "spec/exit_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "kv/block_size.h"
#include "sampling/logits.h"

namespace octavo {
namespace {

// What comes first says little about what comes later.
constexpr int kFirstPlace = 16;
constexpr int kRuns = 24;
constexpr int kVerified = 4;  // further tokens of the step that is timed for verify_token_s

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The first quarter: less of what disturbs than the median, less chance than the least.
double typical(std::vector<double>& seconds) {
  const auto middle = seconds.begin() + std::ssize(seconds) / 4;
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

}  // namespace

int ExitProbe::num_blocks(int num_tokens, int num_places, int block_size) {
  return static_cast<int>(blocks_for(num_tokens, block_size)) + num_places;
}

Result<std::unique_ptr<ExitProbe>> ExitProbe::create(Model& model, std::vector<TokenId> tokens,
                                                     int num_places, int num_tokens) {
  const ModelLimits& limits = model.limits();
  const int length = static_cast<int>(tokens.size());
  if (length < kFirstPlace + num_places)
    return fail(ErrorCode::invalid_argument,
                fmt::format("the text has {} tokens, and {} places of it need {} at least; give a "
                            "longer text, or ask for fewer places",
                            length, num_places, kFirstPlace + num_places));
  if (num_blocks(length, num_places, limits.block_size) > limits.num_blocks)
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{} tokens and {} places of them need {} KV blocks, and there are {}; "
                            "give a shorter text, or ask for fewer places",
                            length, num_places, num_blocks(length, num_places, limits.block_size),
                            limits.num_blocks));
  OCTAVO_TRY(AlignedBuffer logits,
             AlignedBuffer::allocate(static_cast<size_t>(limits.max_logits_rows) *
                                         static_cast<size_t>(limits.logits_stride) * sizeof(float),
                                     AlignedBuffer::Use::sparse));
  std::unique_ptr<ExitProbe> probe(
      new ExitProbe(model, std::move(tokens), num_tokens, std::move(logits)));
  std::vector<int> positions;
  for (int64_t i = 0; i < num_places; ++i)
    positions.push_back(kFirstPlace + static_cast<int>(i * (length - kFirstPlace) / num_places));
  probe->read_text(positions);
  probe->take_places();
  return probe;
}

ExitProbe::ExitProbe(Model& model, std::vector<TokenId> tokens, int num_tokens,
                     AlignedBuffer logits)
    : model_(model),
      tokens_(std::move(tokens)),
      num_tokens_(std::min(num_tokens, model.limits().vocab_size)),
      logits_(std::move(logits)) {
  const int64_t blocks = blocks_for(std::ssize(tokens_), model.limits().block_size);
  for (int i = 0; i < blocks; ++i) table_.push_back(BlockId{i});
}

// body(index among rows, row of logits)
template <class Body>
void ExitProbe::each_row(std::span<const int> rows, const Body& body) {
  const auto stride = static_cast<size_t>(model_.limits().logits_stride);
  const auto most = static_cast<size_t>(model_.limits().max_logits_rows);
  for (size_t first = 0; first < rows.size(); first += most) {
    const size_t count = std::min(most, rows.size() - first);
    model_.logits(rows.subspan(first, count), logits());
    for (size_t i = 0; i < count; ++i)
      body(first + i,
           std::span<const float>(logits() + i * stride, static_cast<size_t>(num_tokens_)));
  }
}

void ExitProbe::read_text(std::span<const int> positions) {
  const int chunk = model_.limits().max_num_batched_tokens;
  const int length = static_cast<int>(tokens_.size());
  for (int first = 0; first < length; first += chunk) {
    const int count = std::min(chunk, length - first);
    const BatchSequence sequence{0, count, first, table_};
    std::vector<int> rows;
    for (const int position : positions)
      if (position >= first && position < first + count) rows.push_back(position - first);
    model_.forward({.tokens = std::span(tokens_).subspan(static_cast<size_t>(first),
                                                         static_cast<size_t>(count)),
                    .sequences = {&sequence, 1},
                    .logits_rows = rows});
    each_row(rows, [&](size_t i, std::span<const float> row) {
      places_.push_back({first + rows[i], argmax(row), {}});
    });
  }
}

// The block of a place is written at the place alone, whatever is skipped, so one copy is enough.
void ExitProbe::take_places() {
  auto next = static_cast<int32_t>(table_.size());
  for (Place& place : places_) {
    const auto block = static_cast<size_t>(place.position / model_.limits().block_size);
    place.blocks.assign(table_.begin(), table_.begin() + static_cast<std::ptrdiff_t>(block));
    place.blocks.push_back(BlockId{next++});
    model_.copy_block(table_[block], place.blocks.back());
  }
}

std::vector<ExitSample> ExitProbe::sample(std::span<const int> skipped_layers) {
  std::vector<ExitSample> samples;
  const auto most = static_cast<size_t>(model_.limits().max_num_batched_tokens);
  for (size_t first = 0; first < places_.size(); first += most) {
    const auto places =
        std::span<const Place>(places_).subspan(first, std::min(most, places_.size() - first));
    std::vector<TokenId> tokens;
    std::vector<BatchSequence> sequences;
    std::vector<int> rows;
    for (const Place& place : places) {
      const auto row = static_cast<int>(rows.size());
      sequences.push_back({row, 1, place.position, place.blocks});
      tokens.push_back(tokens_[static_cast<size_t>(place.position)]);
      rows.push_back(row);
    }
    model_.forward({.tokens = tokens, .sequences = sequences, .skipped_layers = skipped_layers});
    each_row(rows, [&](size_t i, std::span<const float> row) {
      samples.push_back({argmax(row) == places[i].said, static_cast<float>(top_probability(row))});
    });
  }
  return samples;
}

double ExitProbe::time_step(std::span<const int> skipped_layers, int num_tokens) {
  std::vector<int> rows;
  for (int i = 0; i < num_tokens; ++i) rows.push_back(i);
  const auto first = tokens_.size() - static_cast<size_t>(num_tokens);
  const BatchSequence sequence{0, num_tokens, static_cast<int>(first), table_};
  const double start_s = seconds_now();
  model_.forward({.tokens = std::span(tokens_).subspan(first),
                  .sequences = {&sequence, 1},
                  .skipped_layers = skipped_layers});
  each_row(rows, [](size_t, std::span<const float> row) { (void)argmax(row); });
  return seconds_now() - start_s;
}

double ExitProbe::draft_seconds(std::span<const int> skipped_layers) {
  std::vector<double> seconds;
  for (int run = 0; run < kRuns; ++run) seconds.push_back(time_step(skipped_layers, 1));
  return typical(seconds);
}

ExitCosts ExitProbe::measure_costs() {
  const int layers = model_.limits().num_layers;
  std::vector<int> half;
  for (int layer = 0; layer < layers / 2; ++layer) half.push_back(layer);
  std::vector<double> whole, verified, drafted;
  for (int run = 0; run < kRuns; ++run) {
    whole.push_back(time_step({}, 1));
    verified.push_back(time_step({}, 1 + kVerified));
    drafted.push_back(time_step(half, 1));
  }
  const double step_s = typical(whole);
  const double skipped = std::max(static_cast<double>(half.size()), 1.0);
  // The head takes time, too, whatever the clock says.
  return {.step_s = step_s,
          .verify_token_s = std::max(typical(verified) - step_s, 0.0) / kVerified,
          .layer_s = std::clamp((step_s - typical(drafted)) / skipped, 0.0, step_s / layers)};
}

}  // namespace octavo
