#include "bench/step_recorder.h"

#include <utility>

namespace octavo {

StepSample sample_step(const Step& step, const Scheduler& scheduler) {
  const SchedulerStats stats = scheduler.stats();
  StepSample sample;
  sample.running = step.num_chunks - step.num_padding;
  sample.waiting = stats.num_waiting;
  sample.prefill_tokens = step.work.prefill_tokens;
  sample.decode_tokens = step.work.num_seqs - step.num_padding;
  sample.padding_tokens = step.num_padding;
  sample.blocks_free = stats.num_free_blocks;
  sample.blocks_cached = stats.num_cached_blocks;
  sample.blocks_held = stats.num_blocks - stats.num_free_blocks - stats.num_cached_blocks;
  sample.waste_tokens = stats.reserved_tokens - stats.stored_tokens;
  return sample;
}

void BlockMapRecorder::take(double time_s, const Scheduler& scheduler,
                            std::vector<BlockMapRow>& rows) {
  if (wanted_ == 0 || step_++ % every_ != 0) return;
  scheduler.map_blocks(uses_);
  BlockMapRow row{time_s, {}};
  for (const BlockUse& use : uses_)
    row.blocks.push_back(
        {static_cast<int32_t>(use.owner), 100 * use.filled_tokens / scheduler.pool().block_size()});
  rows.push_back(std::move(row));
  if (rows.size() < 2 * wanted_) return;
  for (size_t i = 0; i < wanted_; ++i) rows[i] = std::move(rows[2 * i]);
  rows.resize(wanted_);
  every_ *= 2;
}

}  // namespace octavo
