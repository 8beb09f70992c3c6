#include "server/api_embeddings.h"

#include <fmt/format.h>

#include <bit>
#include <iterator>
#include <utility>

#include "server/api_json.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

class EmbeddingWriter : public AnswerWriter {
 public:
  EmbeddingWriter(bool in_base64, AnswerHead head)
      : in_base64_(in_base64), head_(std::move(head)) {}

  // Numbers are most of it, so they do not go through a tree of JSON.
  std::string whole(std::span<const RequestOutput> outputs, const Timings&) override {
    std::string data;
    size_t num_tokens = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto& values = outputs[i].embedding;
      fmt::format_to(
          std::back_inserter(data), R"({}{{"object":"embedding","index":{},"embedding":{}}})",
          i > 0 ? "," : "", i,
          in_base64_ ? fmt::format("\"{}\"", floats_base64(values)) : floats_json(values));
      num_tokens += outputs[i].prompt_token_ids.size();
    }
    const Json rest = {{"model", head_.model},
                       {"id", head_.id},
                       {"created", head_.created},
                       {"usage", {{"prompt_tokens", num_tokens}, {"total_tokens", num_tokens}}}};
    return fmt::format(R"({{"object":"list","data":[{}],{})", data, to_line(rest).substr(1));
  }

  std::vector<std::string> events(const ChoiceEvent&, const Usage*, const RequestOutput*) override {
    return {};
  }
  std::string usage_event(const Usage&, const Timings&, uint64_t) override { return ""; }

 private:
  bool in_base64_;
  AnswerHead head_;
};

// The first tokens of the text, and those that stand before and after every text.
ApiResult<std::vector<TokenId>> cut_ids(const Tokenizer& tokenizer, const std::string& text,
                                        std::vector<TokenId> ids, size_t most, bool parse_special,
                                        const std::stop_token& stop) {
  auto plain = tokenizer.encode(text, {.parse_special = parse_special, .stop = stop});
  if (!plain) return tl::unexpected<ApiError>(to_api_error(plain.error()));
  const size_t extra = ids.size() - std::min(plain->size(), ids.size());
  size_t before = 0;
  while (before < extra && !std::equal(plain->begin(), plain->end(),
                                       ids.begin() + static_cast<std::ptrdiff_t>(before)))
    ++before;
  const size_t after = std::min(extra - before, most - std::min(most, before));
  const size_t kept = most - after;
  ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(kept),
            ids.end() - static_cast<std::ptrdiff_t>(after));
  return ids;
}

ApiResult<std::vector<TokenId>> ids_of(PromptInput& input, const EmbeddingRequest& request,
                                       const Tokenizer& tokenizer, int max_model_len,
                                       const std::stop_token& stop) {
  const auto cut = request.truncate_prompt_tokens;
  const auto most = static_cast<size_t>(cut.value_or(-1) < 0 ? max_model_len : *cut);
  if (auto* ids = std::get_if<std::vector<TokenId>>(&input)) {
    if (cut && ids->size() > most) ids->resize(most);
    return std::move(*ids);
  }
  const auto& text = std::get<std::string>(input);
  auto ids = tokenizer.encode(text, {.parse_special = request.parse_special,
                                     .add_special = request.add_special_tokens,
                                     .stop = stop});
  if (!ids) {
    ApiError error = to_api_error(ids.error());
    error.param = "input";
    return tl::unexpected(std::move(error));
  }
  if (!cut || ids->size() <= most) return std::move(*ids);
  return cut_ids(tokenizer, text, std::move(*ids), most, request.parse_special, stop);
}

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) {
      return i + k < bytes.size() ? uint32_t{static_cast<uint8_t>(bytes[i + k])} : 0;
    };
    const uint32_t word = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (size_t k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? kAlphabet[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace

ApiResult<std::vector<Request>> embedding_requests(EmbeddingRequest& request,
                                                   const PoolingConfig& pooling,
                                                   const Tokenizer& tokenizer, int max_model_len,
                                                   std::stop_token stop) {
  const PoolingParams params = {.type = pooling.type,
                                .normalize = request.normalize.value_or(pooling.normalize),
                                .dimensions = request.dimensions.value_or(0)};
  std::vector<Request> requests;
  for (PromptInput& input : request.inputs) {
    OCTAVO_TRY(std::vector<TokenId> ids, ids_of(input, request, tokenizer, max_model_len, stop));
    requests.push_back({.prompt_token_ids = std::move(ids),
                        .priority = request.priority,
                        .cache_salt = request.cache_salt,
                        .pooling = params});
  }
  return requests;
}

std::unique_ptr<AnswerWriter> make_answer_writer(const EmbeddingRequest& request, const Tokenizer&,
                                                 AnswerHead head) {
  return std::make_unique<EmbeddingWriter>(request.in_base64, std::move(head));
}

std::string floats_base64(std::span<const float> values) {
  std::string bytes;
  bytes.reserve(4 * values.size());
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 255);
  }
  return base64(bytes);
}

std::string floats_json(std::span<const float> values) {
  fmt::memory_buffer out;
  out.push_back('[');
  for (const float value : values) {
    if (out.size() > 1) out.push_back(',');
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
  out.push_back(']');
  return fmt::to_string(out);
}

}  // namespace octavo
