#include "bench/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "base/file_map.h"
#include "bench/json_fields.h"
#include "formats/quote.h"
#include "formats/shallow_json.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr size_t kMaxLineBytes = size_t{4} << 20;
constexpr int kMaxDepth = 2;
constexpr int kMaxPriority = 1'000'000;
constexpr double kMaxSeconds = 1e9;
constexpr size_t kMaxNameBytes = 256;

tl::unexpected<Error> corrupt(std::string why) {
  return fail(ErrorCode::corrupt_file, std::move(why));
}

tl::unexpected<Error> bad_field(std::string_view field, std::string_view takes) {
  return corrupt(fmt::format("'{}' is not {}", field, takes));
}

Result<int64_t> read_integer(const json& value, std::string_view field, int64_t low, int64_t high) {
  if (const auto number = integer_between(value, low, high)) return *number;
  return bad_field(field, fmt::format("an integer from {} to {}", low, high));
}

Result<int> read_int(const json& value, std::string_view field, int low, int high) {
  OCTAVO_TRY(const int64_t number, read_integer(value, field, low, high));
  return static_cast<int>(number);
}

Result<double> read_seconds(const json& value, std::string_view field, double unit_s) {
  const double seconds = value.is_number() ? value.get<double>() * unit_s : -1;
  if (seconds >= 0 && seconds <= kMaxSeconds) return seconds;
  return bad_field(field, fmt::format("a time from 0 to {:g} s", kMaxSeconds));
}

Result<std::string> read_name(const json& value, std::string_view field) {
  if (value.is_number_integer()) return value.dump();
  if (!value.is_string() || value.get_ref<const std::string&>().size() > kMaxNameBytes)
    return bad_field(field,
                     fmt::format("a string of at most {} bytes or an integer", kMaxNameBytes));
  return value.get<std::string>();
}

template <class T>
Result<std::vector<T>> read_ids(const json& value, std::string_view field, int64_t highest) {
  if (!value.is_array() || value.empty() || value.size() > kMaxLength)
    return bad_field(field, fmt::format("a list of 1 to {} integers", kMaxLength));
  std::vector<T> ids;
  ids.reserve(value.size());
  for (const json& entry : value) {
    OCTAVO_TRY(const int64_t id, read_integer(entry, field, 0, highest));
    ids.push_back(static_cast<T>(id));
  }
  return ids;
}

Result<void> read_prompt_ids(const json& value, std::string_view field, TraceRequest& request) {
  constexpr int64_t kHighest = std::numeric_limits<int32_t>::max();
  OCTAVO_TRY(request.prompt_token_ids, read_ids<TokenId>(value, field, kHighest));
  request.prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
  return {};
}

// One name that a line may have, and the part of the request it gives: two names of one part
// exclude each other.
enum class Part { arrival, prompt, output, priority, salt, group, prefix, hash_ids };
constexpr size_t kNumParts = 8;

struct Field {
  std::string_view name;
  Part part;
  Result<void> (*read)(const json& value, std::string_view field, TraceRequest& request);
};

template <auto Member, int Low, int High>
Result<void> read_member(const json& value, std::string_view field, TraceRequest& request) {
  OCTAVO_TRY(request.*Member, read_int(value, field, Low, High));
  return {};
}

template <auto Member>
Result<void> read_text(const json& value, std::string_view field, TraceRequest& request) {
  OCTAVO_TRY(request.*Member, read_name(value, field));
  return {};
}

template <int UnitsPerSecond>
Result<void> read_arrival(const json& value, std::string_view field, TraceRequest& request) {
  OCTAVO_TRY(request.arrival_s, read_seconds(value, field, 1.0 / UnitsPerSecond));
  return {};
}

Result<void> read_hash_ids(const json& value, std::string_view field, TraceRequest& request) {
  OCTAVO_TRY(request.hash_ids, read_ids<int64_t>(value, field, int64_t{1} << 62));
  return {};
}

constexpr auto read_prompt_length = read_member<&TraceRequest::prompt_tokens, 1, kMaxLength>;
constexpr auto read_output_length = read_member<&TraceRequest::output_tokens, 1, kMaxLength>;

constexpr std::array kFields = {
    Field{"arrival_s", Part::arrival, read_arrival<1>},
    Field{"timestamp", Part::arrival, read_arrival<1000>},
    Field{"prompt_tokens", Part::prompt, read_prompt_length},
    Field{"input_length", Part::prompt, read_prompt_length},
    Field{"prompt_token_ids", Part::prompt, read_prompt_ids},
    Field{"output_tokens", Part::output, read_output_length},
    Field{"output_length", Part::output, read_output_length},
    Field{"priority", Part::priority,
          read_member<&TraceRequest::priority, -kMaxPriority, kMaxPriority>},
    Field{"cache_salt", Part::salt, read_text<&TraceRequest::salt>},
    Field{"prefix_group", Part::group, read_text<&TraceRequest::prefix_group>},
    Field{"prefix_tokens", Part::prefix, read_member<&TraceRequest::prefix_tokens, 1, kMaxLength>},
    Field{"hash_ids", Part::hash_ids, read_hash_ids},
};

std::string known_fields() {
  std::string names;
  for (const Field& field : kFields)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", field.name);
  return names;
}

Result<const Field*> find_field(const std::string& name) {
  for (const Field& field : kFields)
    if (field.name == name) return &field;
  return corrupt(
      fmt::format("{} is no field of a request; known are {}", quote(name), known_fields()));
}

using Seen = std::array<std::string_view, kNumParts>;  // the name that gave each part; empty: none

std::string_view& seen_as(Seen& seen, Part part) { return seen[static_cast<size_t>(part)]; }

Result<void> check_whole(Seen& seen, const TraceRequest& request) {
  if (seen_as(seen, Part::prompt).empty())
    return corrupt("'prompt_tokens' is missing, or 'prompt_token_ids' or 'input_length'");
  if (seen_as(seen, Part::output).empty())
    return corrupt("'output_tokens' is missing, or 'output_length'");
  if (seen_as(seen, Part::group).empty() != seen_as(seen, Part::prefix).empty())
    return corrupt("'prefix_group' and 'prefix_tokens' need each other");
  if (request.prefix_tokens > request.prompt_tokens)
    return corrupt(fmt::format("'prefix_tokens' is {}, more than the {} tokens of the prompt",
                               request.prefix_tokens, request.prompt_tokens));
  return {};
}

// The contents of a prompt come from one place.
Result<void> check_contents(const TraceRequest& request) {
  const bool has_hash_ids = !request.hash_ids.empty();
  if (has_hash_ids + (request.prefix_tokens > 0) + !request.prompt_token_ids.empty() > 1)
    return corrupt("'prompt_token_ids', 'prefix_group' and 'hash_ids' exclude each other");
  const auto needed =
      static_cast<size_t>((request.prompt_tokens + kHashIdTokens - 1) / kHashIdTokens);
  if (has_hash_ids && request.hash_ids.size() != needed)
    return corrupt(
        fmt::format("'hash_ids' has {} ids; a prompt of {} tokens has {}, one for each "
                    "{} tokens",
                    request.hash_ids.size(), request.prompt_tokens, needed, kHashIdTokens));
  return {};
}

Result<TraceRequest> read_request(const json& object) {
  TraceRequest request;
  Seen seen;
  for (const auto& [name, value] : object.items()) {
    OCTAVO_TRY(const Field* field, find_field(name));
    std::string_view& by = seen_as(seen, field->part);
    if (!by.empty())
      return corrupt(fmt::format("'{}' and '{}' say the same; give one", by, field->name));
    by = field->name;
    OCTAVO_CHECK_OK(field->read(value, field->name, request));
  }
  OCTAVO_CHECK_OK(check_whole(seen, request));
  OCTAVO_CHECK_OK(check_contents(request));
  return request;
}

Result<TraceRequest> parse_line(std::string_view line) {
  if (line.size() > kMaxLineBytes)
    return fail(ErrorCode::resource_exhausted,
                fmt::format("has {} bytes, over the limit of {}", line.size(), kMaxLineBytes));
  const auto [root, too_deep] = parse_shallow_json(line, kMaxDepth);
  if (too_deep || !root.is_object()) return corrupt("is not a JSON object with flat fields");
  return read_request(root);
}

tl::unexpected<Error> too_many() {
  return fail(ErrorCode::resource_exhausted,
              fmt::format("is beyond the limit of {} requests; cut the trace", kMaxRequests));
}

// A number for each name, in the order in which they are met.
template <class Name>
uint32_t index_of(std::map<Name, uint32_t>& indices, const Name& name) {
  return indices.try_emplace(name, static_cast<uint32_t>(indices.size())).first->second;
}

struct Maker {
  uint64_t seed;
  TokenRange tokens;
  std::map<std::string, uint32_t> groups = {};
  std::map<int64_t, uint32_t> blocks = {};

  void append_blocks(const TraceRequest& from, std::vector<TokenId>& out) {
    for (const int64_t id : from.hash_ids) {
      const int missing = from.prompt_tokens - static_cast<int>(out.size());
      Draws(seed, DrawFor::named_block, index_of(blocks, id))
          .append_tokens(std::min(missing, kHashIdTokens), tokens, out);
    }
  }

  std::vector<TokenId> prompt(const TraceRequest& from, uint32_t index) {
    if (!from.prompt_token_ids.empty()) return from.prompt_token_ids;
    std::vector<TokenId> out;
    append_blocks(from, out);
    if (from.prefix_tokens > 0)
      Draws(seed, DrawFor::shared_tokens, index_of(groups, from.prefix_group))
          .append_tokens(from.prefix_tokens, tokens, out);
    Draws(seed, DrawFor::own_tokens, index)
        .append_tokens(from.prompt_tokens - static_cast<int>(out.size()), tokens, out);
    return out;
  }
};

Result<void> check_total(const Trace& trace) {
  int64_t total = 0;
  for (const TraceRequest& request : trace) total += request.prompt_tokens;
  if (total <= kMaxWorkloadTokens) return {};
  return fail(ErrorCode::resource_exhausted,
              fmt::format("the trace has {} prompt tokens, over the limit of {}; cut it", total,
                          kMaxWorkloadTokens));
}

}  // namespace

Result<Trace> parse_trace(std::string_view text, const std::string& name) {
  Trace trace;
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Result<TraceRequest> request =
        trace.size() < static_cast<size_t>(kMaxRequests) ? parse_line(line) : too_many();
    if (!request)
      return fail(request.error().code,
                  fmt::format("{} line {}: {}", name, number, request.error().message));
    trace.push_back(std::move(*request));
  }
  if (trace.empty()) return corrupt(fmt::format("{}: has no requests", name));
  std::stable_sort(trace.begin(), trace.end(), [](const TraceRequest& a, const TraceRequest& b) {
    return a.arrival_s < b.arrival_s;
  });
  return trace;
}

Result<Trace> read_trace(const std::string& path) {
  OCTAVO_TRY(const FileMap map, FileMap::open(path));
  return parse_trace({reinterpret_cast<const char*>(map.bytes().data()), map.size()}, path);
}

Result<Workload> make_workload(const Trace& trace, uint64_t seed, TokenRange tokens) {
  OCTAVO_CHECK_OK(check_token_range(tokens));
  OCTAVO_CHECK_OK(check_total(trace));
  Maker maker{seed, tokens};
  Workload workload;
  for (const TraceRequest& from : trace)
    workload.push_back(
        {.arrival_s = from.arrival_s,
         .prompt_token_ids = maker.prompt(from, static_cast<uint32_t>(workload.size())),
         .output_tokens = from.output_tokens,
         .priority = from.priority,
         .salt = from.salt});
  return workload;
}

}  // namespace octavo
