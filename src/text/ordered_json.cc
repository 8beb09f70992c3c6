#include "text/ordered_json.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

// Builds the values bottom-up from the parser's events.
class OrderedReader final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(true); }
  bool start_array(size_t) override { return open(false); }
  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() override;
  bool end_array() override {
    Json array = std::move(open_.back().items);
    open_.pop_back();
    return add(std::move(array));
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

  Json root;

 private:
  struct Frame {  // an array or object that has begun
    bool is_object;
    std::string key = {};
    std::vector<std::string> keys = {};  // of an object, one for each item
    Json::array_t items = {};
  };

  bool open(bool is_object) {
    open_.push_back({is_object});
    return true;
  }
  bool add(Json value);

  std::vector<Frame> open_;
};

bool OrderedReader::add(Json value) {
  if (open_.empty()) {
    root = std::move(value);
    return true;
  }
  Frame& frame = open_.back();
  if (frame.is_object) frame.keys.push_back(std::move(frame.key));
  frame.items.push_back(std::move(value));
  return true;
}

bool OrderedReader::end_object() {
  Frame frame = std::move(open_.back());
  open_.pop_back();
  Json object = Json::object();
  auto& members = object.get_ref<Json::object_t&>();
  members.reserve(frame.items.size());
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < frame.items.size(); ++i) {
    const auto [place, is_new] = places.emplace(frame.keys[i], members.size());
    if (is_new)
      members.emplace_back(frame.keys[i], std::move(frame.items[i]));
    else
      (members.begin() + static_cast<std::ptrdiff_t>(place->second))->second =
          std::move(frame.items[i]);
  }
  return add(std::move(object));
}

}  // namespace

Json parse_ordered_json(std::string_view text) {
  OrderedReader reader;
  Json::sax_parse(text.begin(), text.end(), &reader);
  return std::move(reader.root);
}

}  // namespace octavo
