#include "formats/hf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file_map.h"
#include "formats/json_section.h"
#include "formats/named_templates.h"
#include "formats/quote.h"
#include "formats/tokenizer_json.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// It repeats each added token: Gemma 3's 6,400 take 1.2 MB.
constexpr size_t kMaxTokenizerConfigBytes = size_t{16} << 20;
constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
constexpr size_t kMaxTemplates = 32;
constexpr const char* kMoreTemplates = "additional_chat_templates";

std::string_view text_of(const FileMap& map) {
  return {reinterpret_cast<const char*>(map.bytes().data()), map.size()};
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// An empty object if there is no such file.
Result<json> read_object(const std::string& path, size_t max_bytes = kMaxConfigBytes) {
  if (!exists(path)) return json::object();
  OCTAVO_TRY(const FileMap map, FileMap::open(path));
  return parse_config_json(text_of(map), path, max_bytes);
}

class FolderReader {
 public:
  FolderReader(const std::string& folder, TokenizerSpec& spec) : folder_(folder), spec_(spec) {}

  Result<void> read_tokenizer_config() {
    const std::string path = folder_ + "/tokenizer_config.json";
    OCTAVO_TRY(const json object, read_object(path, kMaxTokenizerConfigBytes));
    const JsonSection config(object, path, "");
    OCTAVO_CHECK_OK(take_token(config, "bos_token", spec_.bos));
    OCTAVO_CHECK_OK(take_token(config, "eos_token", spec_.eos));
    // Nothing is computed with it.
    if (const auto taken = take_token(config, "pad_token", spec_.padding); !taken)
      spec_.notes.push_back(fmt::format("not used, and ignored: {}", taken.error().message));
    OCTAVO_CHECK_OK(take_rule(config, "add_bos_token", spec_.bos, spec_.add_bos));
    OCTAVO_CHECK_OK(take_rule(config, "add_eos_token", spec_.eos, spec_.add_eos));
    return take_template(config);
  }

  // Files of their own count more than the field.
  Result<void> read_template_files() {
    OCTAVO_TRY(auto source, read_template(folder_ + "/chat_template.jinja"));
    if (source) spec_.chat_template = std::move(*source);
    for (const std::string& name : names_of_more()) {
      OCTAVO_TRY(source,
                 read_template(fmt::format("{}/{}/{}.jinja", folder_, kMoreTemplates, name)));
      if (source) add_named_template(name, *source, spec_);
    }
    return {};
  }

  // Which tokens end an answer: generation_config.json, else config.json.
  Result<void> read_ends() {
    for (const char* name : {"generation_config.json", "config.json"}) {
      const std::string path = fmt::format("{}/{}", folder_, name);
      OCTAVO_TRY(const json object, read_object(path));
      const JsonSection config(object, path, "");
      const json* ends = config.find("eos_token_id");
      if (!ends) continue;
      for (const json& id : ends->is_array() ? *ends : json::array({*ends}))
        OCTAVO_CHECK_OK(add_end(config, id));
      return {};
    }
    return {};
  }

 private:
  // Nothing if there is no such file.
  static Result<std::optional<std::string>> read_template(const std::string& path) {
    if (!exists(path)) return std::optional<std::string>();
    OCTAVO_TRY(const FileMap map, FileMap::open(path));
    if (map.size() > kMaxTemplateBytes)
      return fail(ErrorCode::unsupported, fmt::format("{}: has {} bytes, above the limit of {}",
                                                      path, map.size(), kMaxTemplateBytes));
    return std::optional(std::string(text_of(map)));
  }

  // Of the templates beside the model's own, sorted.
  std::vector<std::string> names_of_more() const {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator it(fs::path(folder_) / kMoreTemplates, error), end;
         !error && it != end && names.size() < kMaxTemplates; it.increment(error))
      if (it->path().extension() == ".jinja") names.push_back(it->path().stem().string());
    std::ranges::sort(names);
    return names;
  }

  // A token is given by its spelling, alone or as an object's content.
  Result<void> take_token(const JsonSection& config, const char* field,
                          std::optional<TokenId>& id) const {
    const json* value = config.find(field);
    if (!value) return {};
    const json content = value->is_object() ? value->value("content", json()) : *value;
    if (!content.is_string()) return config.error(field, "is no token");
    const auto found = find_token(spec_, content.get<std::string>());
    if (!found)
      return config.error(field, fmt::format("is {}, which is not in tokenizer.json",
                                             quote(content.get<std::string>())));
    id = found;
    return {};
  }

  Result<void> take_rule(const JsonSection& config, const char* field,
                         const std::optional<TokenId>& id, std::optional<bool>& adds) const {
    OCTAVO_TRY(const auto given, config.find_bool(field));
    if (given) adds = *given && id;
    return {};
  }

  // One template, or several with names.
  Result<void> take_template(const JsonSection& config) {
    const json* value = config.find("chat_template");
    if (!value) return {};
    if (value->is_string()) {
      spec_.chat_template = value->get<std::string>();
      return {};
    }
    if (!value->is_array()) return config.error("chat_template", "is neither text nor a list");
    for (const json& entry : *value) {
      const json name = entry.is_object() ? entry.value("name", json()) : json();
      const json source = entry.is_object() ? entry.value("template", json()) : json();
      if (!name.is_string() || !source.is_string())
        return config.error("chat_template", "has an entry without a name or a template");
      add_named_template(name.get_ref<const std::string&>(), source.get_ref<const std::string&>(),
                         spec_);
    }
    return {};
  }

  Result<void> add_end(const JsonSection& config, const json& id) {
    if (id == -1) return {};  // none
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= spec_.tokens.size())
      return config.error("eos_token_id", fmt::format("is {}, which is no token of tokenizer.json",
                                                      quote(id.dump())));
    const TokenId token{id.get<int32_t>()};
    if (!spec_.eos)
      spec_.eos = token;
    else if (token != *spec_.eos)
      spec_.extra_eog.push_back(token);
    return {};
  }

  const std::string& folder_;
  TokenizerSpec& spec_;
};

}  // namespace

Result<TokenizerSpec> read_hf_tokenizer(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json";
  if (!exists(path))
    return fail(ErrorCode::not_found,
                fmt::format("{} is not there{}", path,
                            exists(folder + "/tokenizer.model")
                                ? "; tokenizer.model is not read: save the tokenizer with "
                                  "Transformers, which writes tokenizer.json"
                                : ""));
  OCTAVO_TRY(const FileMap map, FileMap::open(path));
  OCTAVO_TRY(TokenizerSpec spec, parse_tokenizer_json(text_of(map), path));
  FolderReader reader(folder, spec);
  OCTAVO_CHECK_OK(reader.read_tokenizer_config());
  OCTAVO_CHECK_OK(reader.read_template_files());
  OCTAVO_CHECK_OK(reader.read_ends());
  return spec;
}

}  // namespace octavo
