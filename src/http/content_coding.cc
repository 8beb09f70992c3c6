#include "http/content_coding.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <memory>

namespace octavo::http {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
// Of zstd's window, which a frame may ask for; RFC 9659 has the same bound.
constexpr int kMaxWindowLog = 23;
constexpr int kGzipWindow = 15 + 16;  // of any size; only gzip's own frame

// Decodes piece by piece. The whole input lies there from the start.
class Decoder {
 public:
  enum class State : uint8_t { more, done, malformed };

  virtual ~Decoder() = default;
  // Fills `into` from its start; sets how much of it is filled.
  virtual State next(std::array<char, kPieceBytes>& into, size_t& filled) = 0;
};

class GzipDecoder final : public Decoder {
 public:
  explicit GzipDecoder(std::string_view bytes) : rest_(bytes) {
    is_open_ = inflateInit2(&stream_, kGzipWindow) == Z_OK;
  }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;
  ~GzipDecoder() override {
    if (is_open_) inflateEnd(&stream_);
  }

  State next(std::array<char, kPieceBytes>& into, size_t& filled) override {
    if (!is_open_) throw std::bad_alloc();
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(into.size());
    const State state = fill();
    filled = into.size() - stream_.avail_out;
    return state;
  }

 private:
  State fill() {
    while (stream_.avail_out > 0) {
      feed();
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        if (rest_.empty() && stream_.avail_in == 0) return State::done;
        inflateReset(&stream_);  // another member
      } else if (result != Z_OK) {
        return State::malformed;  // Z_BUF_ERROR: it is cut off
      }
    }
    return State::more;
  }
  // zlib counts its input in 32 bits.
  void feed() {
    if (stream_.avail_in > 0 || rest_.empty()) return;
    const size_t n = std::min<size_t>(rest_.size(), std::numeric_limits<uInt>::max());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
    stream_.avail_in = static_cast<uInt>(n);
    rest_.remove_prefix(n);
  }

  z_stream stream_ = {};
  std::string_view rest_;
  bool is_open_ = false;
};

class ZstdDecoder final : public Decoder {
 public:
  explicit ZstdDecoder(std::string_view bytes)
      : context_(ZSTD_createDCtx(), &ZSTD_freeDCtx), input_{bytes.data(), bytes.size(), 0} {
    if (!context_) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  State next(std::array<char, kPieceBytes>& into, size_t& filled) override {
    ZSTD_outBuffer output{into.data(), into.size(), 0};
    State state = State::more;
    while (state == State::more && output.pos < output.size) state = step(output);
    filled = output.pos;
    return state;
  }

 private:
  State step(ZSTD_outBuffer& output) {
    const size_t in_before = input_.pos, out_before = output.pos;
    const size_t left = ZSTD_decompressStream(context_.get(), &output, &input_);
    if (ZSTD_isError(left)) return State::malformed;
    if (left == 0 && input_.pos == input_.size) return State::done;
    const bool is_stuck = input_.pos == in_before && output.pos == out_before;
    return is_stuck ? State::malformed : State::more;
  }

  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context_;
  ZSTD_inBuffer input_;
};

std::unique_ptr<Decoder> make_decoder(ContentCoding coding, std::string_view bytes) {
  if (coding == ContentCoding::gzip) return std::make_unique<GzipDecoder>(bytes);
  return std::make_unique<ZstdDecoder>(bytes);
}

std::optional<DecodeFault> check(size_t num_bytes, size_t num_coded, const DecodeLimits& limits) {
  if (num_bytes > limits.max_bytes) return DecodeFault::too_large;
  if (num_bytes > kFreeDecodedBytes && num_bytes / kMaxCodingRatio > num_coded)
    return DecodeFault::too_dense;
  return std::nullopt;
}

// As std::string would grow it, but asked for before.
bool make_room(std::string& text, size_t more, const DecodeLimits& limits) {
  if (text.size() + more <= text.capacity()) return true;
  const size_t room = std::max(2 * text.capacity(), text.size() + more);
  if (limits.may_take && !limits.may_take(text.capacity() + room)) return false;
  text.reserve(room);
  return true;
}

}  // namespace

std::optional<ContentCoding> content_coding(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower.empty() || lower == "identity") return ContentCoding::identity;
  if (lower == "gzip" || lower == "x-gzip") return ContentCoding::gzip;
  if (lower == "zstd") return ContentCoding::zstd;
  return std::nullopt;
}

tl::expected<std::string, DecodeFault> decode(ContentCoding coding, std::string_view bytes,
                                              const DecodeLimits& limits) {
  const auto decoder = make_decoder(coding, bytes);
  const auto piece = std::make_unique<std::array<char, kPieceBytes>>();
  std::string text;
  for (auto state = Decoder::State::more; state == Decoder::State::more;) {
    size_t filled = 0;
    state = decoder->next(*piece, filled);
    if (state == Decoder::State::malformed) return tl::unexpected(DecodeFault::malformed);
    if (const auto fault = check(text.size() + filled, bytes.size(), limits))
      return tl::unexpected(*fault);
    if (!make_room(text, filled, limits)) return tl::unexpected(DecodeFault::no_memory);
    text.append(piece->data(), filled);
  }
  return text;
}

}  // namespace octavo::http
