// A million steps of randomly drawn sets of requests, options and mishaps. After each step: the
// bookkeeping holds (check()), no sequence is lost, somebody got on, and nobody who has waited too
// long was overtaken. At the end: everything ended once, with the tokens that were asked for, and
// no block is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "sim/simulator.h"

namespace octavo {
namespace {

#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr int64_t kSteps = 1'000'000;
#else
constexpr int64_t kSteps = 150'000;
#endif
constexpr int kBlock = 16;
constexpr int kLongestRun = 2'000'000;  // steps; more than any of these takes

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  std::mt19937 random_;
};

struct Scenario {
  SimOptions options;
  std::vector<std::vector<TokenId>> prompts;
  std::vector<SimRequest> requests;
};

SchedulerOptions draw_scheduler(Draw& draw, uint32_t seed, int num_blocks) {
  SchedulerOptions s;
  // Each combination comes, whatever else is drawn.
  s.policy = static_cast<SchedulingPolicy>(seed % 4);
  s.mode = static_cast<SchedulingMode>(seed / 4 % 2);
  s.kv_layout = static_cast<KvCacheLayout>(seed / 8 % 4 == 3);
  s.enable_prefix_caching = seed / 32 % 3 != 0;
  s.prefix_cache_policy = static_cast<EvictionPolicy>(draw.below(2));
  s.pad_finished = draw.one_in(2);
  s.keep_kv = !draw.one_in(12);
  s.max_num_seqs = draw.between(1, 8);
  s.max_num_batched_tokens = s.max_num_seqs + draw.below(draw.one_in(2) ? 8 : 80);
  s.long_prefill_token_threshold = draw.one_in(3) ? draw.between(1, 30) : 0;
  s.max_model_len = draw.one_in(3) ? num_blocks * kBlock : draw.between(1, num_blocks * kBlock);
  s.max_waiting_s = draw.one_in(4) ? 0 : 0.02 * draw.between(1, 60);
  s.ageing_tokens_per_s = draw.below(500);
  s.max_inter_token_s = draw.one_in(3) ? 0.012 : 0;
  return s;
}

std::vector<TokenId> draw_prompt(Draw& draw, int longest) {
  // Of three families, whose tokens are all known: prompts meet at any length.
  std::vector<TokenId> prompt;
  const int family = draw.below(3), length = draw.between(1, longest);
  for (int i = 0; i < length; ++i) prompt.push_back(TokenId{family * 1000 + i});
  if (!draw.one_in(3))
    for (int i = draw.below(length); i < length; ++i)
      prompt[static_cast<size_t>(i)] = TokenId{5000 + draw.below(5)};
  return prompt;
}

Scenario draw_scenario(uint32_t seed) {
  Draw draw(seed);
  Scenario s;
  s.options.num_blocks = draw.one_in(8) ? 1 : draw.between(1, 16);
  s.options.block_size = kBlock;
  s.options.scheduler = draw_scheduler(draw, seed, s.options.num_blocks);
  s.options.noise = 0.5;
  s.options.abandoned_share = draw.one_in(3) ? 0.1 : 0;
  s.options.seed = seed;
  s.options.max_concurrency = draw.one_in(4) ? draw.between(1, 10) : 0;
  const int count = draw.between(5, 60);
  const int pause_ms = draw.one_in(3) ? 0 : draw.between(1, 200);
  const int longest = s.options.scheduler.max_model_len + (draw.one_in(6) ? 20 : 0);
  double arrival_s = 0;
  for (int i = 0; i < count; ++i) s.prompts.push_back(draw_prompt(draw, longest));
  for (int i = 0; i < count; ++i) {
    SimRequest r{.arrival_s = arrival_s, .prompt = s.prompts[static_cast<size_t>(i)]};
    const int room = s.options.scheduler.max_model_len - static_cast<int>(r.prompt.size());
    r.output_tokens = draw.one_in(10) ? 0 : draw.between(1, std::max(1, std::min(room, 40)));
    r.priority = draw.below(3);
    if (draw.one_in(5)) r.salt = "salt";
    if (draw.one_in(4)) r.n = draw.between(2, 5);
    if (draw.one_in(8)) r.cancel_s = arrival_s + 0.01 * draw.below(300);
    if (draw.one_in(12)) r.cancel_after_tokens = draw.between(1, 30);
    if (draw.one_in(12)) r.fails_at_token = draw.below(30);
    s.requests.push_back(r);
    if (pause_ms > 0 && !draw.one_in(4)) arrival_s += 0.001 * draw.below(2 * pause_ms);
  }
  return s;
}

class Watched {
 public:
  explicit Watched(const Scenario& scenario) : scenario_(scenario) {
    SimOptions options = scenario.options;
    options.on_step = [this](const SimStep& step) { look_at(step); };
    auto made = Simulator::create(options, scenario.requests);
    EXPECT_TRUE(made) << made.error().message;
    simulator_ = std::move(*made);
  }

  void run() {
    for (;;) {
      const Simulator::Outcome outcome = simulator_->step();
      ASSERT_NE(outcome, Simulator::Outcome::stalled) << "nobody could do anything: " << describe();
      if (outcome == Simulator::Outcome::ended) break;
      ASSERT_LT(++num_steps, kLongestRun) << "no end";
      look_around();
      if (::testing::Test::HasFailure()) return;
    }
    look_at_end();
  }

  int64_t num_steps = 0, overdue = 0;
  const Simulator& simulator() const { return *simulator_; }

 private:
  std::string describe() const {
    const Scheduler& scheduler = simulator_->scheduler();
    std::string text = std::to_string(scheduler.pool().num_blocks()) + " blocks, " +
                       std::to_string(scheduler.pool().num_free()) + " free, " +
                       std::to_string(scheduler.pool().num_cached()) + " cached;";
    for (const auto& [id, place] : simulator_->sequences())
      text += " " + std::to_string(raw(id)) + (scheduler.is_running(id) ? " runs: " : " waits: ") +
              std::to_string(scheduler.tokens(id).size()) + ";";
    return text;
  }

  // Choices that are forked later stand beside the requests of the same moment.
  bool is_later(SimPlace a, SimPlace b) const {
    const auto arrival = [&](SimPlace p) { return simulator_->records()[p.request].arrival_s; };
    if (arrival(a) != arrival(b)) return arrival(a) > arrival(b);
    return a.choice == 0 && b.choice == 0 && a.request > b.request;
  }

  void look_at(const SimStep& step) {
    ASSERT_EQ(step.admitted.size(), step.step->admitted.size());
    if (step.admitted.empty()) return;
    const SchedulerOptions& options = scenario_.options.scheduler;
    for (const auto& [id, place] : simulator_->sequences()) {
      const bool is_new_fork = place.choice > 0 && !known_.contains(id);
      if (simulator_->scheduler().is_running(id) || is_new_fork) continue;
      const double waited = step.start_s - simulator_->records()[place.request].arrival_s;
      const bool too_long = options.max_waiting_s > 0 && waited > options.max_waiting_s;
      overdue += too_long;
      // Whose next block is being computed may let others pass, but not for too long.
      const bool in_order =
          options.policy == SchedulingPolicy::fcfs && !options.enable_prefix_caching;
      if (!too_long && !in_order) continue;
      for (const SimPlace& other : step.admitted)
        EXPECT_FALSE(is_later(other, place)) << raw(id) << " was overtaken";
    }
  }

  // Between two steps.
  void look_around() {
    const Scheduler& scheduler = simulator_->scheduler();
    const auto sound = scheduler.check();
    ASSERT_TRUE(sound) << sound.error().message;
    int running = 0, waiting = 0;
    known_.clear();
    for (const auto& [id, place] : simulator_->sequences()) {
      known_.insert(id);
      ++(scheduler.is_running(id) ? running : waiting);
    }
    EXPECT_EQ(waiting, scheduler.num_waiting());
    // The others that run are padding.
    if (scenario_.options.scheduler.mode == SchedulingMode::continuous ||
        !scenario_.options.scheduler.pad_finished)
      EXPECT_EQ(running, scheduler.num_running());
    else
      EXPECT_LE(running, scheduler.num_running());
    EXPECT_LE(scheduler.num_running(), scheduler.options().max_num_seqs);
  }

  void look_at_end() {
    Scheduler& scheduler = simulator_->scheduler();
    EXPECT_FALSE(scheduler.has_work());
    EXPECT_EQ(simulator_->num_live(), 0);
    EXPECT_TRUE(simulator_->sequences().empty());
    EXPECT_EQ(scheduler.pool().num_held(), 0);
    scheduler.prefix_tree().clear();
    EXPECT_EQ(scheduler.pool().num_free(), scenario_.options.num_blocks);
    for (size_t i = 0; i < scenario_.requests.size(); ++i) look_at(i);
  }

  void look_at(size_t index) {
    SCOPED_TRACE("request " + std::to_string(index));
    const SimRequest& request = scenario_.requests[index];
    const SimRecord& record = simulator_->records()[index];
    const auto length = static_cast<int>(request.prompt.size()) + request.output_tokens;
    const auto num_tokens = static_cast<int>(record.token_s.size());
    ASSERT_TRUE(record.end);
    EXPECT_GE(record.end_s, record.arrival_s);
    EXPECT_EQ(*record.end == SimEnd::refused, length > scenario_.options.scheduler.max_model_len);
    EXPECT_TRUE(std::is_sorted(record.token_s.begin(), record.token_s.end()));
    const bool may_be_cancelled = request.cancel_s || request.cancel_after_tokens;
    EXPECT_TRUE(*record.end != SimEnd::cancelled || may_be_cancelled);
    EXPECT_TRUE(*record.end != SimEnd::failed || num_tokens == request.fails_at_token);
    EXPECT_TRUE(*record.end != SimEnd::length || num_tokens == request.n * request.output_tokens);
    EXPECT_LE(num_tokens, request.n * request.output_tokens);
  }

  const Scenario& scenario_;
  std::unique_ptr<Simulator> simulator_;
  std::set<SeqId> known_;
};

TEST(RandomRuns, AMillionStepsLoseNothing) {
  int64_t steps = 0, preemptions = 0, hits = 0, overdue = 0, evicted = 0;
  std::map<SimEnd, int> ends;
  for (uint32_t seed = 1; steps < kSteps; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Scenario scenario = draw_scenario(seed);
    Watched watched(scenario);
    watched.run();
    if (HasFailure()) return;
    steps += watched.num_steps;
    overdue += watched.overdue;
    const Scheduler& scheduler = watched.simulator().scheduler();
    preemptions += scheduler.stats().num_preemptions;
    hits += scheduler.prefix_tree().stats().prompts.hit_tokens;
    evicted += scheduler.prefix_tree().stats().evicted_blocks;
    for (const SimRecord& record : watched.simulator().records()) ++ends[*record.end];
  }
  // It was put to the test.
  EXPECT_GT(preemptions, 200);
  EXPECT_GT(hits, 5000);
  EXPECT_GT(evicted, 200);
  EXPECT_GT(overdue, 2000);
  for (const SimEnd end : {SimEnd::length, SimEnd::cancelled, SimEnd::failed, SimEnd::refused})
    EXPECT_GT(ends[end], 20);
}

}  // namespace
}  // namespace octavo
