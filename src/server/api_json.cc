#include "server/api_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/memory_shortage.h"
#include "formats/quote.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

// Ends a value from its leaves on. The library's destructor lists all of it first, which takes
// memory where there may be none.
void take_apart(Json& value) {
  if (!value.is_structured()) return;
  for (Json& item : value) take_apart(item);
  value.clear();
}

// Builds the values bottom-up, each in its final size, from the parser's events.
class BodyReader final : public nlohmann::json_sax<Json> {
 public:
  BodyReader(BodyFields& fields, size_t num_bytes) : fields_(fields), num_bytes_(num_bytes) {}
  ~BodyReader() override;  // of what was not read to its end, too

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return refuse("the body has binary values"); }

  bool start_object(size_t) override { return open(true); }
  bool start_array(size_t) override { return open(false); }
  bool key(string_t& name) override {
    if (open_.size() == 1) field_ = name;
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() override;
  bool end_array() override {
    Json array = std::move(open_.back().items);
    open_.pop_back();
    return add(std::move(array));
  }
  bool parse_error(size_t position, const std::string& last,
                   const nlohmann::detail::exception&) override;

  std::optional<ApiError> error;

 private:
  struct Frame {  // an array or object that has begun
    bool is_object;
    std::string key = {};
    std::vector<std::pair<std::string, Json>> members = {};
    Json::array_t items = {};
  };

  bool refuse(std::string message) {
    error = {.message = std::move(message), .param = field_};
    return false;
  }
  std::string in_field(std::string_view what) const {
    return fmt::format("{} {}", field_.empty() ? "the body" : quote(field_), what);
  }
  bool count_value() {
    return ++num_values_ <= kMaxBodyValues ||
           refuse(
               fmt::format("the body has more than {} values; send less at once", kMaxBodyValues));
  }
  bool open(bool is_object);
  bool add(Json value);
  bool keep_fields(Frame& root);
  bool check_keys(const Frame& frame);

  BodyFields& fields_;
  size_t num_bytes_;  // of the body
  std::vector<Frame> open_;
  std::string field_;  // the body's field that is being read
  size_t num_values_ = 0;
};

BodyReader::~BodyReader() {
  for (Frame& frame : open_) {
    for (Json& item : frame.items) take_apart(item);
    for (auto& member : frame.members) take_apart(member.second);
  }
}

bool BodyReader::open(bool is_object) {
  if (open_.empty() && !is_object) return refuse("the body must be a JSON object");
  if (open_.size() == kMaxBodyDepth)
    return refuse(in_field(fmt::format("is nested deeper than {} levels", kMaxBodyDepth)));
  if (!count_value()) return false;
  open_.push_back({is_object});
  return true;
}

bool BodyReader::add(Json value) {
  if (open_.empty()) return refuse("the body must be a JSON object");
  if (!value.is_structured() && !count_value()) return false;
  Frame& frame = open_.back();
  if (frame.is_object)
    frame.members.emplace_back(std::move(frame.key), std::move(value));
  else
    frame.items.push_back(std::move(value));
  return true;
}

bool BodyReader::end_object() {
  // A refused frame stays for the destructor.
  if (open_.size() == 1) return keep_fields(open_.back());
  if (!check_keys(open_.back())) return false;
  Frame frame = std::move(open_.back());
  open_.pop_back();
  Json object = Json::object();
  auto& members = object.get_ref<Json::object_t&>();
  // Its own emplace() would look through all members for the key.
  members.reserve(frame.members.size());
  for (auto& [name, value] : frame.members) members.emplace_back(std::move(name), std::move(value));
  return add(std::move(object));
}

bool BodyReader::keep_fields(Frame& root) {
  for (auto& [name, value] : root.members) {
    field_ = name;
    if (!fields_.try_emplace(std::move(name), std::move(value)).second)
      return refuse(in_field("is there twice"));
  }
  field_.clear();
  return true;
}

bool BodyReader::check_keys(const Frame& frame) {
  std::vector<std::string_view> keys;
  keys.reserve(frame.members.size());
  for (const auto& member : frame.members) keys.push_back(member.first);
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  return twice == keys.end() ||
         refuse(in_field(fmt::format("has an object with the key {} twice", quote(*twice))));
}

bool BodyReader::parse_error(size_t position, const std::string& last,
                             const nlohmann::detail::exception& why) {
  constexpr int kOutOfRange = 406;
  if (why.id == kOutOfRange)
    return refuse(in_field(fmt::format("has a number that is too large: {}", quote(last))));
  return refuse(fmt::format("the body is not JSON: unexpected {} at byte {}",
                            position > num_bytes_ ? "end" : quote(last), position));
}

}  // namespace

ApiResult<BodyFields> parse_body(std::string_view body) {
  const auto refuse = [](std::string message) {
    return tl::unexpected<ApiError>({.message = std::move(message)});
  };
  if (body.empty()) return refuse("the body is empty; send a JSON object");
  if (body.starts_with("\xEF\xBB\xBF"))
    return refuse("the body begins with a byte order mark; leave it out");
  // The parser takes U+0000 for the end of the text, whatever follows.
  if (const size_t at = body.find('\0'); at != std::string_view::npos)
    return refuse(fmt::format("the body is not JSON: U+0000 at byte {}", at + 1));
  BodyFields fields;
  BodyReader reader(fields, body.size());
  {
    const MayRunOutOfMemory this_body;
    Json::sax_parse(body.begin(), body.end(), &reader);
  }
  if (reader.error) return tl::unexpected(std::move(*reader.error));
  return fields;
}

std::string to_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json ids_json(std::span<const TokenId> ids) {
  Json list = Json::array();
  for (const TokenId id : ids) list.push_back(raw(id));
  return list;
}

}  // namespace octavo
