// What a load generator asks: requests, or conversations of several that follow each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/lengths.h"
#include "bench/trace.h"
#include "core/ids.h"

namespace octavo {

// One request. Its prompt is one of ids, text and messages.
struct Turn {
  std::vector<TokenId> token_ids = {};
  bool made_up = false;  // the ids: the words that stand for them will do as well
  std::string text = {};
  std::string messages = {};              // a JSON list of chat messages
  std::optional<int> output_tokens = {};  // at most; nothing: the server's own limit
};

struct Dialogue {
  double arrival_s = 0;
  std::vector<Turn> turns = {};  // each is sent when the one before it has been answered
};

enum class DataSet : uint8_t { random, shared_prefix, multi_turn, mixed, jsonl, trace };
std::optional<DataSet> find_data_set(std::string_view name);

struct DialogueSpec {
  DataSet data_set = DataSet::random;
  int num_prompts = 100;              // requests; of a file: at most
  std::optional<Lengths> input = {};  // tokens of a prompt's own; nothing: as suits the data set
  std::optional<Lengths> output = {};
  std::optional<int> prefix_tokens = {};  // that the prompts of a group share
  int prefix_groups = 1;
  int turns = 4;                      // of a conversation
  TokenRange tokens = {1000, 31999};  // ids below are often control tokens
  uint64_t seed = 0;
};

// Made-up ones; all arrive at 0. Errors: as make_workload(). REQUIRES: not jsonl, not trace.
Result<std::vector<Dialogue>> make_dialogues(const DialogueSpec& spec);

// A JSON object per line: prompt (text), prompt_token_ids or messages, and output_tokens, which
// may be left out. Errors, naming the line: as read_trace(). Lines over spec.num_prompts are not
// used.
Result<std::vector<Dialogue>> parse_dialogues(std::string_view text, const std::string& name,
                                              const DialogueSpec& spec);

// Arrivals are the trace's. Errors: as make_workload().
Result<std::vector<Dialogue>> make_dialogues(const Trace& trace, const DialogueSpec& spec);

// Common English words, about one token each: equal ids, equal words.
std::string words_of(const std::vector<TokenId>& ids);

}  // namespace octavo
