#include "http/content_coding.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

namespace octavo::http {
namespace {

using Fault = DecodeFault;

std::string gzip(std::string_view text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(std::string_view text, int window_log = 0) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (window_log > 0) {
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setPledgedSrcSize(context, ZSTD_CONTENTSIZE_UNKNOWN);
    ZSTD_inBuffer input{text.data(), text.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    ZSTD_compressStream2(context, &output, &input, ZSTD_e_continue);
    EXPECT_EQ(ZSTD_compressStream2(context, &output, &input, ZSTD_e_end), 0u);
    out.resize(output.pos);
  } else {
    out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  }
  ZSTD_freeCCtx(context);
  return out;
}

// Text that shrinks to a third or so.
std::string words(size_t num_bytes) {
  std::string text;
  for (uint32_t x = 1; text.size() < num_bytes; x = x * 1664525 + 1013904223)
    text += std::to_string(x >> 8) + " and ";
  text.resize(num_bytes);
  return text;
}

constexpr size_t kMany = 64 << 20;

struct Coded {
  ContentCoding coding;
  std::string (*encode)(std::string_view);
};
const Coded kCodings[] = {{ContentCoding::gzip, gzip},
                          {ContentCoding::zstd, [](std::string_view text) { return zstd(text); }}};

tl::expected<std::string, Fault> decoded(ContentCoding coding, std::string_view bytes,
                                         size_t max_bytes = kMany) {
  return decode(coding, bytes, {.max_bytes = max_bytes});
}

TEST(ContentCoding, IsKnownByName) {
  EXPECT_EQ(content_coding("gzip"), ContentCoding::gzip);
  EXPECT_EQ(content_coding("X-GZip"), ContentCoding::gzip);
  EXPECT_EQ(content_coding("ZSTD"), ContentCoding::zstd);
  EXPECT_EQ(content_coding(""), ContentCoding::identity);
  EXPECT_EQ(content_coding("identity"), ContentCoding::identity);
  for (const char* other : {"br", "deflate", "gzip, zstd", "gzip,gzip", " gzip", "gz"})
    EXPECT_EQ(content_coding(other), std::nullopt) << other;
}

TEST(ContentCoding, GivesBackWhatWasEncoded) {
  for (const auto& [coding, encode] : kCodings)
    for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, size_t{3'000'000}}) {
      const std::string text = words(size);
      EXPECT_EQ(decoded(coding, encode(text)), text) << size;
      EXPECT_EQ(decoded(coding, encode(text) + encode("and more")), text + "and more") << size;
    }
}

TEST(ContentCoding, RefusesWhatIsCutOffOrDamagedOrFollowedBySomething) {
  for (const auto& [coding, encode] : kCodings) {
    const std::string good = encode(words(100'000));
    for (const size_t size : {size_t{0}, size_t{1}, size_t{9}, good.size() / 2, good.size() - 1})
      EXPECT_EQ(decoded(coding, std::string_view(good).substr(0, size)),
                tl::unexpected(Fault::malformed))
          << size;
    EXPECT_EQ(decoded(coding, good + "x"), tl::unexpected(Fault::malformed));
    EXPECT_EQ(decoded(coding, good + std::string(20, '\0')), tl::unexpected(Fault::malformed));
    EXPECT_EQ(decoded(coding, words(1000)), tl::unexpected(Fault::malformed));
    std::string bad = good;
    bad[2] = '\x7f';
    EXPECT_EQ(decoded(coding, bad), tl::unexpected(Fault::malformed));
  }
}

TEST(ContentCoding, RefusesAWindowThatTakesMuchMemory) {
  EXPECT_TRUE(decoded(ContentCoding::zstd, zstd(words(100'000), 23)));
  EXPECT_EQ(decoded(ContentCoding::zstd, zstd(words(100'000), 25)),
            tl::unexpected(Fault::malformed));
}

TEST(ContentCoding, RefusesMoreThanMayCome) {
  for (const auto& [coding, encode] : kCodings) {
    const std::string text = words(200'000);
    EXPECT_EQ(decoded(coding, encode(text), text.size()), text);
    EXPECT_EQ(decoded(coding, encode(text), text.size() - 1), tl::unexpected(Fault::too_large));
  }
}

TEST(ContentCoding, RefusesMuchFromLittle) {
  for (const auto& [coding, encode] : kCodings) {
    const std::string bomb = encode(std::string(32 << 20, 'a'));
    size_t taken = 0;
    const auto may_take = [&](size_t bytes) { return (taken = bytes, true); };
    EXPECT_EQ(decode(coding, bomb, {.max_bytes = kMany, .may_take = may_take}),
              tl::unexpected(Fault::too_dense));
    EXPECT_LT(taken, 16u << 20);
    // Short prompts may repeat themselves as they like.
    EXPECT_TRUE(decoded(coding, encode(std::string(1 << 20, 'a'))));
  }
}

TEST(ContentCoding, AsksBeforeItTakes) {
  for (const auto& [coding, encode] : kCodings) {
    const auto few = [](size_t bytes) { return bytes <= 1'000'000; };
    EXPECT_TRUE(decode(coding, encode(words(200'000)), {.max_bytes = kMany, .may_take = few}));
    EXPECT_EQ(decode(coding, encode(words(1'000'001)), {.max_bytes = kMany, .may_take = few}),
              tl::unexpected(Fault::no_memory));
  }
}

}  // namespace
}  // namespace octavo::http
