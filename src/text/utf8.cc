#include "text/utf8.h"

#include <cstdint>
#include <cstring>

namespace octavo {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Sequence {
  size_t size;    // bytes looked at and found fitting; at least 1
  bool complete;  // they are a whole character
  bool cut;       // not complete only because the text ends here
};

uint8_t byte_at(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

size_t size_by_lead(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF.
bool second_byte_fits(uint8_t lead, uint8_t second) {
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return second >= low && second <= high;
}

Sequence read_sequence(std::string_view text, size_t at) {
  const uint8_t lead = byte_at(text, at);
  const size_t size = size_by_lead(lead);
  if (size == 0) return {1, false, false};
  for (size_t i = 1; i < size; ++i) {
    if (at + i == text.size()) return {i, false, true};
    const uint8_t next = byte_at(text, at + i);
    const bool fits = i == 1 ? second_byte_fits(lead, next) : (next & 0xC0) == 0x80;
    if (!fits) return {i, false, false};
  }
  return {size, true, false};
}

// End of the run of ASCII that starts at `at`: most text, eight bytes a step.
size_t skip_ascii(std::string_view text, size_t at) {
  while (at + 8 <= text.size()) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if (word & 0x8080808080808080u) break;
    at += 8;
  }
  while (at < text.size() && byte_at(text, at) < 0x80) ++at;
  return at;
}

}  // namespace

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  for (size_t at = skip_ascii(text, 0); at < text.size(); at = skip_ascii(text, at)) {
    const Sequence sequence = read_sequence(text, at);
    if (!sequence.complete) return at;
    at += sequence.size;
  }
  return std::nullopt;
}

size_t utf8_char_size(std::string_view text, size_t at) { return size_by_lead(byte_at(text, at)); }

void append_utf8(std::string& out, char32_t character) {
  const auto tail = [&](int shift) {
    out.push_back(static_cast<char>(0x80 | ((character >> shift) & 0x3F)));
  };
  if (character < 0x80) {
    out.push_back(static_cast<char>(character));
  } else if (character < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (character >> 6)));
    tail(0);
  } else if (character < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (character >> 12)));
    tail(6), tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | (character >> 18)));
    tail(12), tail(6), tail(0);
  }
}

void Utf8Repair::push(std::string_view bytes, std::string& out) {
  std::string joined;
  if (!pending_.empty()) {
    joined = std::move(pending_).append(bytes);
    pending_.clear();
    bytes = joined;
  }
  size_t at = 0;
  while (at < bytes.size()) {
    const size_t ascii_end = skip_ascii(bytes, at);
    out.append(bytes.substr(at, ascii_end - at));
    at = ascii_end;
    if (at == bytes.size()) break;
    const Sequence sequence = read_sequence(bytes, at);
    if (sequence.cut) {
      pending_ = bytes.substr(at);
      return;
    }
    out.append(sequence.complete ? bytes.substr(at, sequence.size) : kReplacement);
    at += sequence.size;
  }
}

void Utf8Repair::finish(std::string& out) {
  if (!pending_.empty()) out.append(kReplacement);
  pending_.clear();
}

}  // namespace octavo
