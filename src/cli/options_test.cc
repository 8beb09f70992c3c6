#include "cli/options.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "cli/help.h"
#include "cli/option_values.h"
#include "cli/sampling_options.h"
#include "kv/block_size.h"

namespace octavo::cli {
namespace {

TEST(Options, EachHasNameHelpGroupAndCommand) {
  std::map<std::string, uint32_t> commands_by_name;
  for (const OptionSpec& spec : options()) {
    uint32_t& seen = commands_by_name[std::string(spec.name)];
    EXPECT_EQ(seen & spec.commands, 0u) << spec.name << " is there twice for a command";
    seen |= spec.commands;
    EXPECT_FALSE(spec.name.starts_with("no_")) << spec.name;
    EXPECT_FALSE(spec.help.empty()) << spec.name;
    EXPECT_FALSE(spec.help.ends_with('.')) << spec.name;
    EXPECT_FALSE(spec.group.empty()) << spec.name;
    EXPECT_NE(spec.commands, 0u) << spec.name;
    EXPECT_EQ(spec.metavar.empty(), spec.kind == OptionKind::flag) << spec.name;
  }
}

TEST(Options, DefaultsAreAllowedValues) {
  for (const OptionSpec& spec : options()) {
    if (spec.default_text.empty()) continue;
    EXPECT_TRUE(parse_option(spec, spec.default_text, spec.name)) << spec.name;
  }
}

TEST(Options, DefaultsOfSamplingAreThoseOfTheEngine) {
  const OptionValues values(Command::generate);
  const auto params = read_sampling_params(values);
  ASSERT_TRUE(params) << params.error().message;
  const SamplingParams expected;
  EXPECT_EQ(params->n, expected.n);
  EXPECT_EQ(params->temperature, expected.temperature);
  EXPECT_EQ(params->top_p, expected.top_p);
  EXPECT_EQ(params->top_k, expected.top_k);
  EXPECT_EQ(params->min_p, expected.min_p);
  EXPECT_EQ(params->seed, expected.seed);
  EXPECT_EQ(params->presence_penalty, expected.presence_penalty);
  EXPECT_EQ(params->frequency_penalty, expected.frequency_penalty);
  EXPECT_EQ(params->repetition_penalty, expected.repetition_penalty);
  EXPECT_TRUE(params->logit_bias.empty());
  EXPECT_TRUE(params->stop.empty());
  EXPECT_TRUE(params->stop_token_ids.empty());
  EXPECT_EQ(params->ignore_eos, expected.ignore_eos);
  EXPECT_EQ(params->max_tokens, std::nullopt) << "an answer in a terminal goes to its end";
  EXPECT_EQ(params->detokenize, expected.detokenize);
  EXPECT_TRUE(params->allowed_token_ids.empty());
  EXPECT_TRUE(params->bad_words.empty());
  EXPECT_EQ(params->min_tokens, expected.min_tokens);
  EXPECT_EQ(params->logprobs, expected.logprobs);
  EXPECT_EQ(params->prompt_logprobs, expected.prompt_logprobs);
  EXPECT_EQ(params->include_stop_str_in_output, expected.include_stop_str_in_output);
  EXPECT_EQ(params->skip_special_tokens, expected.skip_special_tokens);
}

TEST(Options, DefaultsOfTheEngineAreItsOwn) {
  const EngineOptions expected;
  for (const Command command : {Command::generate, Command::chat, Command::perplexity,
                                Command::bench_compare, Command::bench_latency}) {
    const EngineOptions engine = read_engine_options(OptionValues(command));
    EXPECT_EQ(engine.dtype, expected.dtype);
    EXPECT_EQ(engine.kv_cache_dtype, expected.kv_cache_dtype);
    EXPECT_EQ(engine.threads, expected.threads);
    EXPECT_EQ(engine.block_size, expected.block_size);
    EXPECT_EQ(engine.max_num_batched_tokens, expected.max_num_batched_tokens);
    EXPECT_EQ(engine.kv_cache, expected.kv_cache);
    EXPECT_EQ(engine.max_model_len, expected.max_model_len);
    EXPECT_EQ(engine.gpu_memory_utilization, expected.gpu_memory_utilization);
    EXPECT_EQ(engine.kv_cache_memory_bytes, expected.kv_cache_memory_bytes);
    EXPECT_EQ(engine.max_num_seqs, expected.max_num_seqs);
    EXPECT_EQ(engine.long_prefill_token_threshold, expected.long_prefill_token_threshold);
    EXPECT_EQ(engine.max_queue_len, expected.max_queue_len);
    EXPECT_EQ(engine.scheduling_policy, expected.scheduling_policy);
    EXPECT_EQ(engine.scheduling_mode, expected.scheduling_mode);
    EXPECT_EQ(engine.kv_layout, expected.kv_layout);
    EXPECT_EQ(engine.max_waiting_s, expected.max_waiting_s);
    EXPECT_EQ(engine.max_inter_token_ms, expected.max_inter_token_ms);
    EXPECT_EQ(engine.enable_prefix_caching, expected.enable_prefix_caching);
    EXPECT_EQ(engine.prefix_cache_policy, expected.prefix_cache_policy);
    EXPECT_EQ(engine.enforce_eager, expected.enforce_eager);
  }
}

// Every word of a choice, and the value that the engine gets for it.
TEST(Options, ChoicesOfTheSchedulerReachIt) {
  const auto engine_with = [](std::string_view name, std::string_view word) {
    OptionValues values(Command::generate);
    for (const OptionSpec* spec : options_of(Command::generate))
      if (spec->name == name) values.add(*spec, *parse_option(*spec, word, name));
    return read_engine_options(values);
  };
  for (const OptionSpec* spec : options_of(Command::generate))
    for (const std::string_view word : spec->choices)
      EXPECT_NO_THROW(engine_with(spec->name, word));
  EXPECT_EQ(engine_with("scheduling_policy", "priority").scheduling_policy,
            SchedulingPolicy::priority);
  EXPECT_EQ(engine_with("scheduling_policy", "shortest-prefill-first").scheduling_policy,
            SchedulingPolicy::shortest_prefill_first);
  EXPECT_EQ(engine_with("scheduling_policy", "longest-prefix-match").scheduling_policy,
            SchedulingPolicy::longest_prefix_match);
  EXPECT_EQ(engine_with("scheduling_mode", "static").scheduling_mode, SchedulingMode::static_batch);
  EXPECT_EQ(engine_with("kv_layout", "contiguous").kv_layout, KvCacheLayout::contiguous);
  EXPECT_EQ(engine_with("prefix_cache_policy", "lfu").prefix_cache_policy, EvictionPolicy::lfu);
  EXPECT_FALSE(engine_with("enable_prefix_caching", "off").enable_prefix_caching);
  EXPECT_EQ(engine_with("max_model_len", "128").max_model_len, 128);
  EXPECT_EQ(engine_with("kv_cache_memory_bytes", "10000000000").kv_cache_memory_bytes,
            10'000'000'000);
  EXPECT_EQ(engine_with("max_num_seqs", "7").max_num_seqs, 7);
  EXPECT_EQ(engine_with("max_queue_len", "9").max_queue_len, 9);
  EXPECT_EQ(engine_with("max_inter_token_ms", "12.5").max_inter_token_ms, 12.5);
  EXPECT_EQ(engine_with("max_waiting_s", "3").max_waiting_s, 3);
  EXPECT_EQ(engine_with("long_prefill_token_threshold", "64").long_prefill_token_threshold, 64);
  // Not given, it follows the tokens of a step.
  EXPECT_EQ(engine_with("max_num_batched_tokens", "16").max_num_seqs, 16);
}

TEST(Options, TemperatureAndTopPComeFromTheModelUnlessGiven) {
  const CatalogEntry known{"some", "some.gguf", 0.2, 0.9};
  OptionValues values(Command::generate);
  SamplingParams params;
  use_model_defaults(params, values, &known);
  EXPECT_EQ(params.temperature, 0.2);
  EXPECT_EQ(params.top_p, 0.9);
  use_model_defaults(params, values, nullptr);
  EXPECT_EQ(params.temperature, 0.7);
  EXPECT_EQ(params.top_p, 0.95);
  for (const OptionSpec* spec : options_of(Command::generate))
    if (spec->name == "temperature") values.add(*spec, 0.0);
  auto given = read_sampling_params(values);
  ASSERT_TRUE(given);
  use_model_defaults(*given, values, &known);
  EXPECT_EQ(given->temperature, 0.0);
  EXPECT_EQ(given->top_p, 0.9);
}

TEST(Options, BlockSizesAreThoseOfTheCache) {
  for (const OptionSpec& spec : options()) {
    if (spec.name != "block_size") continue;
    ASSERT_EQ(spec.choices.size(), kBlockSizes.size());
    for (size_t i = 0; i < kBlockSizes.size(); ++i)
      EXPECT_EQ(spec.choices[i], std::to_string(kBlockSizes[i]));
  }
}

// As help shows it: what is on by default by its opposite.
std::string shown_flag(const OptionSpec& spec) {
  const bool is_on = spec.default_text == "on" && spec.kind == OptionKind::flag;
  return (is_on ? "--no-" : "--") + flag_of(spec.name).substr(2) + " ";
}

// Commands whose help shows this flag; the rows of a name may differ from command to command.
uint32_t commands_with(const std::string& flag) {
  uint32_t bits = 0;
  for (const OptionSpec& spec : options())
    if (shown_flag(spec) == flag) bits |= spec.commands;
  return bits;
}

TEST(Help, NamesEveryOptionOfACommandAndNoOther) {
  for (const CommandSpec& command : commands()) {
    const std::string help = help_text(command);
    for (const OptionSpec& spec : options()) {
      const std::string flag = shown_flag(spec);
      EXPECT_EQ(help.find("  " + flag) != std::string::npos,
                (commands_with(flag) & bit(command.command)) != 0)
          << command.name << " " << flag;
    }
  }
}

TEST(Help, FitsATerminal) {
  std::string all = help_text();
  for (const CommandSpec& command : commands()) all += help_text(command);
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = all.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_LE(end - begin, 100u) << all.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(Help, PageNamesEveryOptionAndExitCode) {
  const std::string page = help_markdown();
  for (const OptionSpec& spec : options())
    EXPECT_NE(page.find(flag_of(spec.name).substr(2)), std::string::npos) << spec.name;
  for (const CommandSpec& command : commands())
    EXPECT_EQ(page.find("### `octavo " + std::string(command.name)) != std::string::npos,
              !command.hidden)
        << command.name;
  EXPECT_NE(page.find("| 7 | `context_overflow` |"), std::string::npos);
}

}  // namespace
}  // namespace octavo::cli
