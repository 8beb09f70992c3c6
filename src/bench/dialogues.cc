#include "bench/dialogues.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/json_fields.h"
#include "bench/workload.h"
#include "formats/shallow_json.h"

namespace octavo {
namespace {

using nlohmann::json;

struct NamedSet {
  std::string_view name;
  DataSet data_set;
  std::string_view input, output;  // lengths, if none are asked for
  int prefix_tokens;
};
constexpr std::array kSets = {
    NamedSet{"random", DataSet::random, "512", "128", 0},
    NamedSet{"shared-prefix", DataSet::shared_prefix, "64", "64", 512},
    NamedSet{"multi-turn", DataSet::multi_turn, "32-128", "32-128", 0},
    NamedSet{"mixed", DataSet::mixed, "80%:32-256+20%:1024-2048", "80%:16-64+20%:128-256", 0},
    NamedSet{"jsonl", DataSet::jsonl, "1", "1", 0},
    NamedSet{"trace", DataSet::trace, "1", "1", 0},
};

constexpr std::array<std::string_view, 128> kWords = {
    "the",   "of",    "and",   "to",    "in",    "is",    "that",  "for",    "it",    "as",
    "was",   "with",  "be",    "by",    "on",    "not",   "he",    "his",    "but",   "at",
    "are",   "this",  "have",  "from",  "or",    "had",   "an",    "they",   "which", "one",
    "you",   "were",  "all",   "her",   "she",   "there", "would", "their",  "we",    "him",
    "been",  "has",   "when",  "who",   "will",  "no",    "more",  "if",     "out",   "so",
    "up",    "said",  "what",  "its",   "about", "than",  "into",  "them",   "can",   "only",
    "other", "time",  "new",   "some",  "could", "these", "two",   "may",    "first", "then",
    "do",    "any",   "like",  "my",    "now",   "over",  "such",  "our",    "man",   "me",
    "even",  "most",  "made",  "after", "also",  "well",  "did",   "many",   "old",   "must",
    "years", "back",  "very",  "still", "see",   "much",  "where", "way",    "us",    "work",
    "long",  "great", "world", "own",   "go",    "get",   "here",  "both",   "life",  "being",
    "under", "day",   "never", "same",  "down",  "found", "while", "last",   "might", "use",
    "come",  "since", "small", "house", "water", "night", "light", "through"};

const NamedSet& named(DataSet data_set) {
  return *std::find_if(kSets.begin(), kSets.end(),
                       [&](const NamedSet& set) { return set.data_set == data_set; });
}

SyntheticSpec synthetic_of(const DialogueSpec& spec) {
  const NamedSet& set = named(spec.data_set);
  SyntheticSpec out;
  out.num_requests = spec.num_prompts;
  out.prompt = spec.input ? *spec.input : *Lengths::parse("input", set.input);
  out.output = spec.output ? *spec.output : *Lengths::parse("output", set.output);
  out.shared_tokens = spec.prefix_tokens.value_or(set.prefix_tokens);
  out.groups = std::min(spec.prefix_groups, spec.num_prompts);
  out.seed = spec.seed;
  return out;
}

Turn turn_of(WorkloadRequest&& request) {
  return {.token_ids = std::move(request.prompt_token_ids),
          .made_up = true,
          .output_tokens = request.output_tokens};
}

Result<Turn> read_prompt(const json& line) {
  JsonFields fields(line, "");
  Turn turn;
  const json* text = fields.find("prompt");
  const json* ids = fields.find("prompt_token_ids");
  const json* messages = fields.find("messages");
  if ((text != nullptr) + (ids != nullptr) + (messages != nullptr) != 1)
    return fail(ErrorCode::corrupt_file,
                "has to have one of 'prompt', 'prompt_token_ids' and 'messages'");
  if (text) {
    OCTAVO_TRY(turn.text, fields.text("prompt"));
  }
  if (messages && !messages->is_array()) return fields.error("messages", "is not a list");
  if (messages) turn.messages = messages->dump(-1, ' ', false, json::error_handler_t::replace);
  if (ids && !ids->is_array()) return fields.error("prompt_token_ids", "is not a list");
  for (const json& id : ids ? *ids : json::array()) {
    const auto number = integer_between(id, 0, INT32_MAX);
    if (!number) return fields.error("prompt_token_ids", "holds something that is no token id");
    turn.token_ids.push_back(static_cast<TokenId>(*number));
  }
  if (fields.find("output_tokens")) {
    OCTAVO_TRY(turn.output_tokens, fields.integer("output_tokens"));
    if (*turn.output_tokens < 1 || *turn.output_tokens > kMaxLength)
      return fields.error("output_tokens", "is not an integer from 1 to 16777216");
  }
  OCTAVO_CHECK_OK(fields.finish());
  return turn;
}

Result<Turn> parse_line(std::string_view line) {
  constexpr size_t kMaxLineBytes = size_t{16} << 20;
  constexpr int kMaxDepth = 16;
  if (line.size() > kMaxLineBytes)
    return fail(ErrorCode::resource_exhausted,
                fmt::format("has {} bytes, over the limit of {}", line.size(), kMaxLineBytes));
  const auto [root, too_deep] = parse_shallow_json(line, kMaxDepth);
  if (too_deep || !root.is_object()) return fail(ErrorCode::corrupt_file, "is not a JSON object");
  return read_prompt(root);
}

}  // namespace

std::optional<DataSet> find_data_set(std::string_view name) {
  for (const NamedSet& set : kSets)
    if (set.name == name) return set.data_set;
  return std::nullopt;
}

Result<std::vector<Dialogue>> make_dialogues(const DialogueSpec& spec) {
  OCTAVO_TRY(Workload workload, make_workload(synthetic_of(spec), spec.tokens));
  const int turns = spec.data_set == DataSet::multi_turn ? spec.turns : 1;
  std::vector<Dialogue> out;
  for (size_t i = 0; i < workload.size(); ++i) {
    if (i % static_cast<size_t>(turns) == 0) out.emplace_back();
    out.back().turns.push_back(turn_of(std::move(workload[i])));
  }
  return out;
}

Result<std::vector<Dialogue>> make_dialogues(const Trace& trace, const DialogueSpec& spec) {
  Trace used = trace;
  used.resize(std::min(used.size(), static_cast<size_t>(spec.num_prompts)));
  OCTAVO_TRY(Workload workload, make_workload(used, spec.seed, spec.tokens));
  std::vector<Dialogue> out;
  for (WorkloadRequest& request : workload) {
    const double arrival_s = request.arrival_s - workload.front().arrival_s;
    const bool is_given = !used[out.size()].prompt_token_ids.empty();
    out.push_back({.arrival_s = arrival_s, .turns = {turn_of(std::move(request))}});
    out.back().turns[0].made_up = !is_given;
  }
  return out;
}

Result<std::vector<Dialogue>> parse_dialogues(std::string_view text, const std::string& name,
                                              const DialogueSpec& spec) {
  std::vector<Dialogue> out;
  for (int64_t number = 1; !text.empty() && std::ssize(out) < spec.num_prompts; ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Result<Turn> turn = parse_line(line);
    if (!turn)
      return fail(turn.error().code,
                  fmt::format("{} line {}: {}", name, number, turn.error().message));
    if (!turn->output_tokens && spec.output) {
      Draws draws(spec.seed, DrawFor::output_length, static_cast<uint32_t>(out.size()));
      turn->output_tokens = spec.output->draw(draws);
    }
    out.push_back({.turns = {std::move(*turn)}});
  }
  if (out.empty()) return fail(ErrorCode::corrupt_file, fmt::format("{}: has no requests", name));
  return out;
}

std::string words_of(const std::vector<TokenId>& ids) {
  std::string out;
  for (const TokenId id : ids) {
    if (!out.empty()) out += ' ';
    out += kWords[static_cast<size_t>(static_cast<uint32_t>(id)) % kWords.size()];
  }
  return out;
}

}  // namespace octavo
