#include "formats/hf_packed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "support/safetensors_writer.h"
#include "support/temp_folder.h"
#include "tensor/dequant.h"
#include "tensor/half.h"

namespace octavo {
namespace {

using namespace testing;
using nlohmann::json;

struct Variant {
  PackingMethod method;
  int64_t inputs, outputs, group_size;  // 0: all of a row
  bool symmetric = false;
  bool act_order = false;
  bool zero_plus_one = true;

  HfQuantization how() const {
    return {method, group_size, method == PackingMethod::gptq && zero_plus_one};
  }
  int64_t group() const { return group_size ? group_size : inputs; }
  int64_t num_groups() const { return (inputs + group() - 1) / group(); }
};

// A random matrix in its packed form, and every weight by the definition.
class Packed {
 public:
  explicit Packed(const Variant& v) : v_(v), rng_(static_cast<unsigned>(v.inputs + v.group_size)) {
    const auto in = static_cast<size_t>(v.inputs), out = static_cast<size_t>(v.outputs);
    const auto groups = static_cast<size_t>(v.num_groups());
    for (size_t i = 0; i < in * out; ++i) codes.push_back(static_cast<int>(rng_() % 16));
    for (size_t i = 0; i < groups * out; ++i) {
      scales.push_back(f16_to_f32(f32_to_f16(0.001f * static_cast<float>(1 + rng_() % 100))));
      zeros.push_back(v.symmetric ? 8 : 1 + static_cast<int>(rng_() % 15));
    }
    for (size_t i = 0; i < in; ++i)
      group_of.push_back(static_cast<int32_t>(i / static_cast<size_t>(v.group())));
    if (v.act_order) std::shuffle(group_of.begin(), group_of.end(), rng_);
  }

  float weight(int64_t out, int64_t in) const {
    const auto at = static_cast<size_t>(out * v_.num_groups() + group_of[static_cast<size_t>(in)]);
    const int code = codes[static_cast<size_t>(out * v_.inputs + in)];
    return scales[at] * static_cast<float>(code - zeros[at]);
  }

  // As a file of safetensors, of the tensors of "m".
  std::string file() {
    header_ = json::object();
    data_.clear();
    if (v_.method == PackingMethod::compressed)
      add_compressed();
    else
      add_by_input();
    return safetensors(header_.dump(), data_);
  }

  std::vector<int> codes;     // [outputs][inputs]
  std::vector<int> zeros;     // [outputs][groups]
  std::vector<float> scales;  // the same
  std::vector<int32_t> group_of;
  std::string left_out;  // a tensor

 private:
  template <class T>
  void add(const std::string& name, const char* type, std::vector<int64_t> shape,
           const std::vector<T>& values) {
    if (name == left_out) return;
    const size_t begin = data_.size();
    data_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    header_[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, data_.size()}}};
  }

  // rows x columns values, eight of a row or column to a word; value of four bits i of a word.
  template <class Value>
  static std::vector<uint32_t> words(int64_t rows, int64_t columns, bool along_rows, bool awq,
                                     Value value) {
    constexpr int kAwq[] = {0, 2, 4, 6, 1, 3, 5, 7};
    std::vector<uint32_t> out;
    for (int64_t r = 0; r < rows; r += along_rows ? 1 : 8)
      for (int64_t c = 0; c < columns; c += along_rows ? 8 : 1) {
        uint32_t word = 0;
        for (int i = 0; i < 8; ++i) {
          const int at = awq ? kAwq[i] : i;
          const int number = value(along_rows ? r : r + at, along_rows ? c + at : c);
          word |= static_cast<uint32_t>(number) << (4 * i);
        }
        out.push_back(word);
      }
    return out;
  }

  int code(int64_t out, int64_t in) const {
    return codes[static_cast<size_t>(out * v_.inputs + in)];
  }
  int zero(int64_t out, int64_t group) const {
    return zeros[static_cast<size_t>(out * v_.num_groups() + group)];
  }

  void add_by_input() {
    const bool awq = v_.method == PackingMethod::awq;
    const int64_t in = v_.inputs, out = v_.outputs, groups = v_.num_groups();
    const int less = v_.how().zero_plus_one ? 1 : 0;
    add("m.qweight", "I32",
        awq ? std::vector<int64_t>{in, out / 8} : std::vector<int64_t>{in / 8, out},
        words(in, out, awq, awq, [&](int64_t i, int64_t o) { return code(o, i); }));
    add("m.qzeros", "I32", {groups, out / 8},
        words(groups, out, true, awq, [&](int64_t g, int64_t o) { return zero(o, g) - less; }));
    std::vector<uint16_t> halves;
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t o = 0; o < out; ++o)
        halves.push_back(f32_to_f16(scales[static_cast<size_t>(o * groups + g)]));
    add("m.scales", "F16", {groups, out}, halves);
    if (!awq) add("m.g_idx", "I32", {in}, group_of);
  }

  void add_compressed() {
    const int64_t in = v_.inputs, out = v_.outputs, groups = v_.num_groups();
    add("m.weight_packed", "I32", {out, in / 8},
        words(out, in, true, false, [&](int64_t o, int64_t i) { return code(o, i); }));
    if (!v_.symmetric)
      add("m.weight_zero_point", "I32", {out / 8, groups},
          words(out, groups, false, false, [&](int64_t o, int64_t g) { return zero(o, g); }));
    add("m.weight_scale", "F32", {out, groups}, scales);
    if (v_.act_order) add("m.weight_g_idx", "I32", {in}, group_of);
    add("m.weight_shape", "I64", {2}, std::vector<int64_t>{out, in});
  }

  Variant v_;
  std::mt19937 rng_;
  json header_;
  std::string data_;
};

// A folder whose file is kept open.
class PackedFolder {
 public:
  explicit PackedFolder(const std::string& file) {
    folder_.write("model.safetensors", file);
    auto shards = Shards::open(folder_.file(""), Integers::read);
    EXPECT_TRUE(shards) << (shards ? "" : shards.error().message);
    shards_ = std::make_unique<Shards>(std::move(*shards));
  }

  Result<HfPackedMatrix> matrix(const HfQuantization& how) const {
    OCTAVO_TRY(const PackedModules found, PackedModules::find(*shards_, how));
    if (!found.modules.contains("m")) return fail(ErrorCode::not_found, "no module");
    return HfPackedMatrix::create("m", found.modules.at("m"), how);
  }

 private:
  TempFolder folder_;
  std::unique_ptr<Shards> shards_;
};

void expect_weights(const HfPackedMatrix& matrix, const Packed& packed, DType type) {
  const auto cols = static_cast<size_t>(matrix.cols());
  const size_t bytes = row_bytes(type, cols);
  std::vector<std::byte> blocks(bytes * static_cast<size_t>(matrix.rows()));
  const auto written = matrix.write(type, 0, blocks.data());
  ASSERT_TRUE(written) << written.error().message;
  std::vector<float> row(cols);
  for (int64_t out = 0; out < matrix.rows(); ++out) {
    dequantize_row(type, blocks.data() + static_cast<size_t>(out) * bytes, row.data(),
                   matrix.cols());
    for (size_t i = 0; i < cols; ++i) {
      const int64_t in = matrix.order().empty() ? static_cast<int64_t>(i) : matrix.order()[i];
      ASSERT_EQ(row[i], packed.weight(out, in)) << out << " " << i;
    }
  }
}

TEST(HfPackedMatrix, WeightsAreExactInEveryFormat) {
  for (const auto method : {PackingMethod::gptq, PackingMethod::awq, PackingMethod::compressed})
    for (const int64_t group : {32, 64, 128, 0})
      for (const bool symmetric : {false, true})
        for (const bool act_order : {false, true})
          for (const bool plus_one : {false, true}) {
            if (method == PackingMethod::awq && act_order) continue;
            const Variant v{method, 256, 72, group, symmetric, act_order, plus_one};
            SCOPED_TRACE(::testing::Message() << name(method) << " " << group << " " << symmetric
                                              << " " << act_order << " " << plus_one);
            Packed packed(v);
            const PackedFolder folder(packed.file());
            const auto matrix = folder.matrix(v.how());
            ASSERT_TRUE(matrix) << matrix.error().message;
            EXPECT_EQ(matrix->symmetric(), symmetric);
            EXPECT_EQ(matrix->order().empty(), !act_order || group == 0);
            expect_weights(*matrix, packed, DType::q4_z);
            if (symmetric) expect_weights(*matrix, packed, DType::q4_0);
          }
}

TEST(HfPackedMatrix, TheLastGroupMayBeShorter) {
  const Variant v{PackingMethod::gptq, 96, 8, 64};
  Packed packed(v);
  const PackedFolder folder(packed.file());
  expect_weights(*folder.matrix(v.how()), packed, DType::q4_z);
}

TEST(HfPackedMatrix, HeadsAreBroughtIntoTheOrderOfRotaryPairs) {
  const Variant v{PackingMethod::gptq, 32, 32, 32};
  Packed packed(v);
  const PackedFolder folder(packed.file());
  const size_t bytes = row_bytes(DType::q4_z, 32);
  std::vector<std::byte> blocks(bytes * 32);
  ASSERT_TRUE(folder.matrix(v.how())->write(DType::q4_z, 16, blocks.data()));
  // Heads of 16 rows: row 2 i is row i of the first half, row 2 i + 1 of the second.
  for (const auto& [row, from] : {std::pair{0, 0}, {1, 8}, {2, 1}, {15, 15}, {16, 16}, {17, 24}}) {
    float values[32];
    dequantize_row(DType::q4_z, blocks.data() + static_cast<size_t>(row) * bytes, values, 32);
    for (int i = 0; i < 32; ++i) EXPECT_EQ(values[i], packed.weight(from, i)) << row;
  }
}

std::string error_of(const Variant& v, Packed& packed) {
  const PackedFolder folder(packed.file());
  const auto matrix = folder.matrix(v.how());
  if (!matrix) return matrix.error().message;
  std::vector<std::byte> blocks(row_bytes(DType::q4_z, static_cast<size_t>(matrix->cols())) *
                                static_cast<size_t>(matrix->rows()));
  const auto written = matrix->write(DType::q4_z, 0, blocks.data());
  return written ? "no error" : written.error().message;
}

TEST(HfPackedMatrix, NamesTensorsThatAreNotRight) {
  const Variant gptq{PackingMethod::gptq, 64, 16, 32};
  for (const char* tensor : {"m.qweight", "m.qzeros", "m.scales"}) {
    Packed packed(gptq);
    packed.left_out = tensor;
    EXPECT_EQ(error_of(gptq, packed), std::string("tensor '") + tensor + "' is missing");
  }
  for (const int32_t group : {-1, 2, 1 << 30}) {
    Packed packed(gptq);
    packed.group_of[5] = group;
    EXPECT_NE(error_of(gptq, packed).find("tensor 'm.g_idx' puts input 5 into group"),
              std::string::npos);
  }
  Packed torn(gptq);
  torn.group_of[5] = 1;
  EXPECT_NE(error_of(gptq, torn).find("groups that are no whole blocks of 32"), std::string::npos);
  Packed other(gptq);
  const Variant wider{PackingMethod::gptq, 64, 16, 64};
  EXPECT_NE(error_of(wider, other).find("for 64 inputs in groups of 64 and 16 outputs"),
            std::string::npos);
  for (const float scale : {NAN, INFINITY}) {
    Packed packed(gptq);
    packed.scales[3] = scale;
    EXPECT_NE(error_of(gptq, packed).find("tensor 'm.scales' holds the scale"), std::string::npos);
  }
  const Variant compressed{PackingMethod::compressed, 64, 16, 32};
  Packed large(compressed);
  large.scales[3] = 1e6f;
  EXPECT_NE(error_of(compressed, large).find("the largest that f16 has"), std::string::npos);
}

// Whatever bytes change: an error or a matrix, nothing else.
TEST(HfPackedMatrix, SurvivesDamage) {
  std::mt19937 rng(5);
  for (const auto method : {PackingMethod::gptq, PackingMethod::awq, PackingMethod::compressed}) {
    const Variant v{method, 64, 16, 32};
    const std::string original = Packed(v).file();
    const size_t header = 8 + original.find("}}", 8);
    int opened = 0;
    for (int i = 0; i < 1000; ++i) {
      std::string damaged = original;
      const size_t size = rng() % 2 ? header : original.size();
      for (unsigned n = 0; n < 1 + rng() % 3; ++n) {
        char& byte = damaged[8 + rng() % (size - 8)];
        byte = byte >= '0' && byte <= '9' ? static_cast<char>('0' + rng() % 10)
                                          : static_cast<char>(byte ^ 1 << rng() % 8);
      }
      const auto file =
          SafetensorsFile::parse(std::as_bytes(std::span(damaged)), "f", Integers::read);
      if (!file) continue;
      PackedParts parts;
      const auto integers = [&](std::string_view end) -> std::optional<ShardIntegers> {
        for (const IntegerTensor& t : file->integers())
          if (t.name.ends_with(end)) return ShardIntegers{&t, &*file};
        return std::nullopt;
      };
      const bool compressed = method == PackingMethod::compressed;
      parts.codes = integers(compressed ? "packed" : "qweight");
      parts.zeros = integers(compressed ? "zero_point" : "qzeros");
      parts.groups = integers("g_idx");
      parts.shape = integers("shape");
      if (!file->tensors().empty()) parts.scales = ShardTensor{&file->tensors()[0], &*file};
      const auto matrix = HfPackedMatrix::create("m", parts, v.how());
      if (!matrix || matrix->rows() * matrix->cols() > 1 << 20) continue;
      std::vector<std::byte> blocks(row_bytes(DType::q4_z, static_cast<size_t>(matrix->cols())) *
                                    static_cast<size_t>(matrix->rows()));
      if (matrix->write(DType::q4_z, 0, blocks.data())) ++opened;
    }
    EXPECT_GT(opened, 0);
  }
}

TEST(HfPackedMatrix, OddWidthsAreRefused) {
  const Variant v{PackingMethod::gptq, 40, 16, 0};
  Packed packed(v);
  EXPECT_NE(error_of(v, packed).find("is of 40 inputs and 16 outputs"), std::string::npos);
}

TEST(HfQuantization, ReadsWhatConfigurationsSay) {
  const auto read = [](const char* text) { return read_hf_quantization(json::parse(text), "c"); };
  const auto gptq = read(R"({"quant_method":"gptq","bits":4,"group_size":128,"desc_act":true,
      "damp_percent":0.1,"meta":{"quantizer":["x"]},"checkpoint_format":"gptq"})");
  ASSERT_TRUE(gptq) << gptq.error().message;
  EXPECT_EQ(gptq->group_size, 128);
  EXPECT_TRUE(gptq->zero_plus_one);
  const auto v2 =
      read(R"({"quant_method":"gptq","bits":4,"group_size":-1,"checkpoint_format":"gptq_v2"})");
  EXPECT_EQ(v2->group_size, 0);
  EXPECT_FALSE(v2->zero_plus_one);
  EXPECT_EQ(
      read(R"({"quant_method":"awq","w_bit":4,"q_group_size":64,"version":"GEMM"})")->group_size,
      64);
  const auto compressed = read(R"({"quant_method":"compressed-tensors","format":"pack-quantized",
      "ignore":["lm_head"],"config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":4,
      "type":"int","strategy":"group","group_size":128,"symmetric":true}}}})");
  ASSERT_TRUE(compressed) << compressed.error().message;
  EXPECT_EQ(compressed->group_size, 128);
}

TEST(HfQuantization, RefusesByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"5", "'quantization_config' is not an object"},
      {R"({})", "quantised by 'an unknown method'"},
      {R"({"quant_method":"bitsandbytes"})", "quantised by 'bitsandbytes'"},
      {R"({"quant_method":"gptq","bits":8,"group_size":128})", "quantization_config.bits' is '8'"},
      {R"({"quant_method":"gptq","bits":4})", "quantization_config.group_size' is missing"},
      {R"({"quant_method":"gptq","bits":4,"group_size":48})", "'48'; supported: -1 and multiples"},
      {R"({"quant_method":"gptq","bits":4,"group_size":32,"checkpoint_format":"marlin"})",
       "'marlin'; supported: gptq and gptq_v2"},
      {R"({"quant_method":"gptq","bits":4,"group_size":32,"dynamic":{"x":{"bits":8}}})", "dynamic"},
      {R"({"quant_method":"awq","bits":4,"group_size":32,"version":"gemv"})", "'gemv'"},
      {R"({"quant_method":"compressed-tensors","format":"float-quantized"})", "'float-quantized'"},
      {R"({"quant_method":"compressed-tensors","config_groups":{}})", "is not one group"},
      {R"({"quant_method":"compressed-tensors","config_groups":{"a":{"weights":{"num_bits":4,
          "strategy":"group","group_size":32},"input_activations":{"num_bits":8}}}})",
       "input_activations' is given"},
  };
  for (const auto& [text, message] : cases) {
    const auto result = read_hf_quantization(json::parse(text), "c");
    ASSERT_FALSE(result) << text;
    EXPECT_NE(result.error().message.find(message), std::string::npos) << result.error().message;
  }
}

}  // namespace
}  // namespace octavo
