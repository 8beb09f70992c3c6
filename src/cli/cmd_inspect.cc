#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "base/quote.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/model_loading.h"
#include "cli/table.h"
#include "kv/block_size.h"
#include "kv/estimator.h"
#include "model/kv_facts.h"
#include "text/template_probe.h"
#include "text/utf8.h"

namespace octavo::cli {
namespace {

constexpr int kBlockSize = 32;  // the default of --block-size

struct KvMemory {
  int64_t context_length;
  int64_t bytes_per_token;
  int64_t bytes_at_full_context;
  int64_t bytes_within_windows;  // that layers with a window look at, of those
};

// Names come from the file and may be anything.
std::string repaired(std::string_view text) {
  std::string out;
  Utf8Repair repair;
  repair.push(text, out);
  repair.finish(out);
  return out;
}

template <class T>
T stored(const GgufEntry& entry) {
  T value;
  std::memcpy(&value, entry.value.data(), sizeof(T));
  return value;
}

Json value_json(const GgufMetadata& file, const GgufEntry& entry) {
  switch (entry.type) {
    case GgufType::array:
      return {{"type", name(entry.element)}, {"length", entry.count}};
    case GgufType::string:
      return repaired(file.get_string(entry.key).value_or(""));
    case GgufType::boolean:
      return file.get_bool(entry.key).value_or(false);
    case GgufType::f32:
      return stored<float>(entry);
    case GgufType::f64:
      return stored<double>(entry);
    case GgufType::i64:
      return stored<int64_t>(entry);
    case GgufType::i8:
    case GgufType::i16:
    case GgufType::i32:
      return file.get_i32(entry.key).value_or(0);
    default:
      return file.get_u64(entry.key).value_or(0);
  }
}

std::vector<int64_t> shape_of(const TensorView& tensor) {
  return {tensor.shape.begin(), tensor.shape.begin() + tensor.rank};
}

int64_t weight_bytes(const ModelSource& file) {
  int64_t bytes = 0;
  for (const TensorView& tensor : file.tensors()) bytes += static_cast<int64_t>(tensor.bytes());
  return bytes;
}

Result<KvMemory> kv_memory(const ModelSource& file) {
  OCTAVO_TRY(const KvFacts facts, read_kv_facts(file));
  if (!facts.context_length)
    return fail(ErrorCode::corrupt_file, "the file does not say how long a context is");
  OCTAVO_TRY(const KvEstimate one_block,
             estimate(facts.shape, kBlockSize, 1, KvType::f16, kBlockSize));
  OCTAVO_TRY(const KvEstimate full,
             estimate(facts.shape, *facts.context_length, 1, KvType::f16, kBlockSize));
  return KvMemory{*facts.context_length, one_block.total_bytes / kBlockSize, full.total_bytes,
                  full.windowed_bytes};
}

Json memory_json(const ModelSource& file) {
  Json json = {{"weight_bytes", weight_bytes(file)}};
  const auto kv = kv_memory(file);
  json["kv_cache_dtype"] = kv ? Json("float16") : Json(nullptr);
  json["context_length"] = kv ? Json(kv->context_length) : Json(nullptr);
  json["kv_bytes_per_token"] = kv ? Json(kv->bytes_per_token) : Json(nullptr);
  json["kv_bytes_at_full_context"] = kv ? Json(kv->bytes_at_full_context) : Json(nullptr);
  json["kv_bytes_within_windows"] = kv ? Json(kv->bytes_within_windows) : Json(nullptr);
  if (!kv) json["why_no_kv"] = kv.error().message;
  return json;
}

// What of the model is about text. A folder has it beside the metadata.
struct TextFacts {
  std::optional<Tokenizer> tokenizer;
  std::string why_no_tokenizer;
  std::string chat_template, tool_template;  // empty: none
};

TextFacts text_facts(const ModelSource& file) {
  TextFacts facts;
  auto spec = file.tokenizer();
  if (spec) {
    facts.chat_template = repaired(spec->chat_template);
    facts.tool_template = repaired(spec->tool_template);
  }
  auto tokenizer = spec ? Tokenizer::create(std::move(*spec)) : tl::unexpected<Error>(spec.error());
  if (!tokenizer) {
    facts.why_no_tokenizer = tokenizer.error().message;
    return facts;
  }
  for (const std::string& source : {tokenizer->chat_template(), tokenizer->tool_template()})
    if (const auto parsed = ChatTemplate::parse(source)) end_turns_with(*parsed, *tokenizer);
  facts.tokenizer = std::move(*tokenizer);
  return facts;
}

std::string spelled(const TextFacts& text, const EndToken& end) {
  return text.tokenizer->piece(end.id);
}

Json ends_json(const TextFacts& text) {
  if (!text.tokenizer) return nullptr;
  Json ends = Json::array();
  for (const EndToken& end : text.tokenizer->ends())
    ends.push_back(
        {{"id", raw(end.id)}, {"token", spelled(text, end)}, {"why", text_of(end.reason)}});
  return ends;
}

Json files_json(const ModelSource& file) {
  Json files = Json::array();
  for (const ModelFilePart& part : file.parts())
    files.push_back({{"path", repaired(part.path)}, {"bytes", part.bytes.size()}});
  return files;
}

Json text_json(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json to_json(const ModelSource& file) {
  Json json = {{"file", repaired(file.file())},
               {"format", file.format()},
               {"file_bytes", file.size()},
               {"files", files_json(file)}};
  json["metadata"] = Json::object();
  for (const GgufEntry& entry : file.metadata())
    json["metadata"][repaired(entry.key)] = value_json(file, entry);
  json["tensors"] = Json::array();
  for (const TensorView& tensor : file.tensors())
    json["tensors"].push_back({{"name", repaired(tensor.name)},
                               {"type", name(tensor.type)},
                               {"shape", shape_of(tensor)},
                               {"bytes", tensor.bytes()}});
  const TextFacts text = text_facts(file);
  json["chat_template"] = text_json(text.chat_template);
  json["tool_template"] = text_json(text.tool_template);
  json["end_of_turn"] = ends_json(text);
  if (!text.tokenizer) json["why_no_tokenizer"] = text.why_no_tokenizer;
  json["notes"] = file.notes();
  json["memory"] = memory_json(file);
  return json;
}

std::string metadata_table(const ModelSource& file) {
  std::vector<std::vector<std::string>> rows;
  for (const GgufEntry& entry : file.metadata())
    rows.push_back({"  " + escape(entry.key), type_text(entry),
                    entry.type == GgufType::array ? "" : value_text(entry)});
  return format_table(rows, "lll");
}

std::string tensor_table(const ModelSource& file) {
  std::vector<std::vector<std::string>> rows;
  for (const TensorView& tensor : file.tensors())
    rows.push_back({"  " + escape(tensor.name), std::string(name(tensor.type)),
                    fmt::format("{}", fmt::join(shape_of(tensor), " x ")),
                    fmt::format("{}", tensor.bytes())});
  return format_table(rows, "llrr");
}

std::string memory_table(const ModelSource& file) {
  std::vector<std::vector<std::string>> rows = {{"  weights", human_bytes(weight_bytes(file))}};
  const auto kv = kv_memory(file);
  if (!kv)
    return format_table(rows, "lr") + fmt::format("  KV cache not known: {}\n", kv.error().message);
  rows.push_back({"  KV cache of one token, float16", human_bytes(kv->bytes_per_token)});
  rows.push_back({fmt::format("  KV cache of {} tokens, float16", kv->context_length),
                  human_bytes(kv->bytes_at_full_context)});
  if (kv->bytes_within_windows != kv->bytes_at_full_context)
    rows.push_back(
        {"    of these, within the layers' windows", human_bytes(kv->bytes_within_windows)});
  return format_table(rows, "lr");
}

std::string file_table(const std::vector<ModelFilePart>& parts) {
  std::vector<std::vector<std::string>> rows;
  for (const ModelFilePart& part : parts)
    rows.push_back({"  " + repaired(part.path), human_bytes(std::ssize(part.bytes))});
  return format_table(rows, "lr");
}

std::string ends_table(const TextFacts& text) {
  if (!text.tokenizer) return fmt::format("  not known: {}\n", text.why_no_tokenizer);
  std::vector<std::vector<std::string>> rows;
  for (const EndToken& end : text.tokenizer->ends())
    rows.push_back({fmt::format("  {}", raw(end.id)), quote(spelled(text, end)),
                    std::string(text_of(end.reason))});
  return rows.empty() ? "  no token\n" : format_table(rows, "rll");
}

// Its lines stay lines; anything else that a terminal would obey does not get there.
std::string template_text(std::string_view title, const std::string& source) {
  if (source.empty()) return fmt::format("\n{}: none\n", title);
  return fmt::format("\n{}:\n{}\n", title, without_controls(source));
}

std::string to_text(const ModelSource& file) {
  std::string out = fmt::format("{}: {}, {}\n", repaired(file.file()), file.format(),
                                human_bytes(static_cast<int64_t>(file.size())));
  for (const std::string& note : file.notes()) out += fmt::format("note: {}\n", note);
  if (const auto parts = file.parts(); parts.size() > 1)
    out += fmt::format("\nFiles ({}):\n{}", parts.size(), file_table(parts));
  out += fmt::format("\nMetadata ({}):\n{}", file.metadata().size(), metadata_table(file));
  out += fmt::format("\nTensors ({}): name, type, shape (columns first), bytes\n{}",
                     file.tensors().size(), tensor_table(file));
  const TextFacts text = text_facts(file);
  out += template_text("Chat template", text.chat_template);
  if (!text.tool_template.empty())
    out += template_text("Chat template for tools", text.tool_template);
  out += fmt::format("\nEnd an answer:\n{}", ends_table(text));
  return out + fmt::format("\nMemory:\n{}", memory_table(file));
}

}  // namespace

Result<void> run_inspect(const Invocation& invocation, Terminal& terminal) {
  OCTAVO_TRY(const auto file, open_model_file(invocation.positionals[0]));
  terminal.write(invocation.options.flag("json") ? dump_line(to_json(*file), 2) : to_text(*file));
  return {};
}

}  // namespace octavo::cli
