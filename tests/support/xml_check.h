// A small check that markup is well formed: elements nest, attributes are quoted and not repeated,
// text has no bare < or &. Enough for what this program writes; no general parser.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::testing {

class XmlCheck {
 public:
  // Empty: well formed. Else what is wrong and where.
  static std::string fault(std::string_view text) { return XmlCheck(text).run(); }

 private:
  explicit XmlCheck(std::string_view text) : all_(text), left_(text) {}

  std::string run() {
    while (!left_.empty() && fault_.empty()) left_.front() == '<' ? read_tag() : read_text();
    if (fault_.empty() && !open_.empty()) fail("not closed: " + open_.back());
    return fault_;
  }

  void fail(const std::string& what) {
    if (fault_.empty())
      fault_ = what + " at byte " + std::to_string(all_.size() - left_.size()) + ": " +
               std::string(left_.substr(0, 40));
  }

  bool take(std::string_view text) {
    if (!left_.starts_with(text)) return false;
    left_.remove_prefix(text.size());
    return true;
  }

  std::string take_name() {
    size_t end = 0;
    while (end < left_.size() && (std::isalnum(static_cast<unsigned char>(left_[end])) ||
                                  left_[end] == '-' || left_[end] == ':'))
      ++end;
    const std::string name(left_.substr(0, end));
    left_.remove_prefix(end);
    if (name.empty()) fail("no name");
    return name;
  }

  void take_reference() {
    const std::string_view reference = left_.substr(0, left_.find(';'));
    for (const std::string_view known : {"&amp", "&lt", "&gt", "&quot", "&#39"})
      if (reference == known) return left_.remove_prefix(reference.size() + 1);
    fail("bare &");
  }

  void read_text() {
    if (left_.front() == '&') return take_reference();
    left_.remove_prefix(1);
  }

  void read_value() {
    if (!take("=\"")) return fail("no quoted value");
    while (fault_.empty() && !left_.empty() && left_.front() != '"') {
      if (left_.front() == '<') return fail("< in a value");
      read_text();
    }
    if (!take("\"")) fail("no end of a value");
  }

  void read_tag() {
    if (take("</")) return close();
    take("<");
    const std::string name = take_name();
    std::set<std::string> attributes;
    while (fault_.empty() && take(" ")) {
      if (!attributes.insert(take_name()).second) fail("attribute given twice");
      read_value();
    }
    if (take("/>")) return;
    if (!take(">")) fail("no end of a tag");
    open_.push_back(name);
  }

  void close() {
    const std::string name = take_name();
    if (open_.empty() || open_.back() != name) return fail("closes what is not open: " + name);
    open_.pop_back();
    if (!take(">")) fail("no end of a tag");
  }

  std::string_view all_, left_;
  std::vector<std::string> open_;
  std::string fault_;
};

}  // namespace octavo::testing
