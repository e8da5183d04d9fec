// One conformance suite for every row of the tables in encodings.cc.
#include "codec/encodings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "codec/batches_for_tests.h"
#include "codec/json_numbers.h"
#include "codec/packed.h"
#include "codec/raw.h"

namespace orla::codec {
namespace {

using model::Batch;

// Neighbouring runs of one series as one, empty ones gone.
Batch joined(Batch batch) {
  batch.make_plain();
  std::vector<Batch::Run> runs;
  for (const Batch::Run& run : batch.runs) {
    if (run.begin == run.end) continue;
    if (runs.empty() || runs.back().series != run.series) {
      runs.push_back(run);
    } else {
      runs.back().end = run.end;
    }
  }
  batch.runs = runs;
  return batch;
}

class Samples : public testing::TestWithParam<const SampleEncoding*> {
 protected:
  std::string encoded(const Batch& batch) {
    std::string bytes;
    const absl::Status status = codec_->encode(batch, bytes);
    EXPECT_TRUE(status.ok()) << status;
    return bytes;
  }
  void expect_back(const Batch& batch, const std::string& where) {
    const std::string bytes = encoded(batch);
    const absl::Status status = codec_->decode(bytes, back_);
    ASSERT_TRUE(status.ok()) << status << ", " << where;
    const bool kept = GetParam()->runs == Runs::kKept;
    ASSERT_EQ(difference(kept ? batch : joined(batch), kept ? back_ : joined(back_)), "") << where;
  }

  std::unique_ptr<SampleCodec> codec_ = GetParam()->make();
  Batch back_;
};

TEST_P(Samples, EveryShapeAndSizeComesBack) {
  base::SeededRandom random(21);
  for (const Shape shape : kShapes)
    for (std::size_t samples = 0; samples <= 600; ++samples)
      expect_back(made_batch(shape, samples, random),
                  fmt::format("shape {}, {} samples", static_cast<int>(shape), samples));
}

TEST_P(Samples, ManyComeBack) {
  base::SeededRandom random(22);
  for (const Shape shape : kShapes)
    expect_back(made_batch(shape, 50'000, random), fmt::format("shape {}", static_cast<int>(shape)));
}

TEST_P(Samples, OddDoublesComeBackToTheBit) {
  Batch batch;
  for (const double v : {0.0,
                         -0.0,
                         1e300,
                         -1e300,
                         5e-324,
                         -5e-324,
                         2.2250738585072014e-308,
                         0.1,
                         1.0 / 3,
                         1e15,
                         1e22,
                         1e23,
                         9007199254740992.0,
                         9007199254740994.0,
                         123456789012.345,
                         0.001,
                         -0.001,
                         999999999999.999,
                         std::numeric_limits<double>::infinity(),
                         -std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::max(),
                         std::bit_cast<double>(0x7ff8000000000001),
                         std::bit_cast<double>(0xfff0000000abcdef)})
    batch.values.push_back(v);
  batch.times.assign(batch.values.size(), model::from_ns(-1));
  batch.times[3] = model::kMinTime;
  batch.times[4] = model::kMaxTime;
  batch.runs.push_back({model::SeriesId{UINT32_MAX}, 0, static_cast<std::uint32_t>(batch.values.size())});
  expect_back(batch, "odd doubles");
}

TEST_P(Samples, CutOffBytesAreRefused) {
  base::SeededRandom random(23);
  for (const Shape shape : {Shape::kSorted, Shape::kPaced, Shape::kMixed}) {
    const std::string bytes = encoded(made_batch(shape, 100, random));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const bool ok = codec_->decode(std::string_view(bytes).substr(0, size), back_).ok();
      // Rows of protobuf have no end: the first ones are as good as all.
      EXPECT_FALSE(ok && GetParam()->runs == Runs::kKept) << size << " of " << bytes.size();
      if (ok) {
        EXPECT_LT(back_.size(), 100U);
      }
    }
  }
}

TEST_P(Samples, FlippedBitsAreNoticedOrABatch) {
  base::SeededRandom random(24);
  for (const Shape shape : {Shape::kSorted, Shape::kPaced, Shape::kMixed, Shape::kRandom}) {
    const std::string bytes = encoded(made_batch(shape, 60, random));
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      const bool ok = codec_->decode(damaged, back_).ok();
      EXPECT_FALSE(ok && GetParam()->damage == Damage::kNoticed) << "bit " << bit;
      if (ok) {
        EXPECT_TRUE(check_columns(back_).ok() && check_paces(back_) == nullptr);
      } else {
        EXPECT_EQ(back_.size(), 0U);
      }
    }
  }
}

TEST_P(Samples, RefusesBatchesThatDoNotFitTogether) {
  base::SeededRandom random(25);
  std::string bytes;
  Batch batch = made_batch(Shape::kSorted, 100, random);
  batch.times.pop_back();
  EXPECT_EQ(codec_->encode(batch, bytes).code(), absl::StatusCode::kInvalidArgument);
  batch = made_batch(Shape::kSorted, 100, random);
  batch.runs.back().end = 99;
  EXPECT_EQ(codec_->encode(batch, bytes).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(Samples, ReportsItsCost) {
  base::SeededRandom random(26);
  const absl::StatusOr<EncodingCost> cost =
      measure_cost(*GetParam(), made_batch(Shape::kSorted, 2000, random), 3, base::SystemClock());
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_GT(cost->encode_ns_per_value, 0);
  EXPECT_GT(cost->decode_ns_per_value, 0);
  EXPECT_GT(cost->bytes_per_value, 0.1);
  EXPECT_LT(cost->bytes_per_value, 64);
  EXPECT_FALSE(measure_cost(*GetParam(), Batch(), 3, base::SystemClock()).ok());
}

std::vector<const SampleEncoding*> rows() {
  std::vector<const SampleEncoding*> all;
  for (const SampleEncoding& encoding : sample_encodings()) all.push_back(&encoding);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Table, Samples, testing::ValuesIn(rows()),
                         [](const auto& param) { return std::string(param.param->name); });

TEST(Encodings, AreFoundByName) {
  EXPECT_STREQ(find_sample_encoding("packed")->name, "packed");
  EXPECT_EQ(find_sample_encoding("pack"), nullptr);
}

class Matrices : public testing::TestWithParam<const MatrixEncoding*> {
 protected:
  void expect_back(const Matrix& matrix) {
    std::string bytes;
    ASSERT_TRUE(GetParam()->encode(matrix, bytes).ok());
    Matrix back;
    const absl::Status status = GetParam()->decode(bytes, back);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(back.rows, matrix.rows);
    EXPECT_EQ(back.columns, matrix.columns);
    ASSERT_EQ(back.elements.index(), matrix.elements.index());
    std::visit(
        [&](const auto& elements) {
          const auto& other = std::get<std::decay_t<decltype(elements)>>(matrix.elements);
          ASSERT_EQ(elements.size(), other.size());
          if (!elements.empty()) {
            EXPECT_EQ(std::memcmp(elements.data(), other.data(), elements.size() * sizeof elements[0]), 0);
          }
        },
        back.elements);
  }
};

TEST_P(Matrices, EveryTypeAndSizeComesBack) {
  base::SeededRandom random(27);
  for (std::size_t rows = 0; rows < 12; ++rows) {
    for (const std::size_t columns : {0, 1, 2, 7, 100}) {
      std::vector<double> doubles;
      std::vector<float> floats;
      std::vector<std::int64_t> longs;
      for (std::size_t i = 0; i < rows * columns; ++i) {
        doubles.push_back(random.below(3) == 0 ? std::bit_cast<double>(random.next()) : random.unit());
        floats.push_back(random.below(3) == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(random.next()))
                                              : static_cast<float>(random.unit()));
        longs.push_back(static_cast<std::int64_t>(random.next() >> random.below(64)));
      }
      expect_back({rows, columns, doubles});
      expect_back({rows, columns, floats});
      expect_back({rows, columns, longs});
    }
  }
}

TEST_P(Matrices, DamageIsAnErrorOrAMatrix) {
  std::string bytes;
  ASSERT_TRUE(GetParam()->encode({2, 3, std::vector<double>{1, 2.5, -3, 4e100, 5, 6}}, bytes).ok());
  Matrix back;
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(GetParam()->decode(std::string_view(bytes).substr(0, size), back).ok()) << size;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const bool ok = GetParam()->decode(damaged, back).ok();
    EXPECT_TRUE(check_matrix(back).ok());
    EXPECT_TRUE(ok || back.size() == 0);
  }
}

TEST_P(Matrices, RefusesAWrongShape) {
  std::string bytes;
  EXPECT_FALSE(GetParam()->encode({2, 3, std::vector<double>{1}}, bytes).ok());
}

std::vector<const MatrixEncoding*> matrix_rows() {
  std::vector<const MatrixEncoding*> all;
  for (const MatrixEncoding& encoding : matrix_encodings()) all.push_back(&encoding);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Table, Matrices, testing::ValuesIn(matrix_rows()),
                         [](const auto& param) { return std::string(param.param->name); });

// As numpy.save() writes numpy.array([[1, 2, 3], [4, 5, 6]], dtype='<f8') and, of one dimension, '<i8'.
TEST(Npy, IsWhatNumPyWrites) {
  std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);
  expected += "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
  expected.append(127 - expected.size(), ' ');
  expected += '\n';
  for (const double v : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}) expected.append(reinterpret_cast<const char*>(&v), 8);
  std::string bytes;
  ASSERT_TRUE(encode_npy({2, 3, std::vector<double>{1, 2, 3, 4, 5, 6}}, bytes).ok());
  EXPECT_EQ(bytes, expected);

  std::string vector("\x93NUMPY\x01\x00\x76\x00", 10);
  vector += "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }";
  vector.append(127 - vector.size(), ' ');
  vector += '\n';
  for (const std::int64_t v : {7, -8}) vector.append(reinterpret_cast<const char*>(&v), 8);
  Matrix back;
  ASSERT_TRUE(decode_npy(vector, back).ok());
  EXPECT_EQ(back.rows, 1U);
  EXPECT_EQ(back.columns, 2U);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(back.elements), (std::vector<std::int64_t>{7, -8}));
}

TEST(Npy, SaysWhatItDoesNotRead) {
  std::string bytes;
  ASSERT_TRUE(encode_npy({1, 1, std::vector<double>{1}}, bytes).ok());
  Matrix back;
  const auto problem = [&](std::string_view from, std::string_view to) {
    std::string other = bytes;
    other.replace(other.find(from), from.size(), to);
    return std::string(decode_npy(other, back).message());
  };
  EXPECT_THAT(problem("False", "True "), testing::HasSubstr("column after column"));
  EXPECT_THAT(problem("<f8", ">f8"), testing::HasSubstr("'<f8'"));
  EXPECT_THAT(problem("(1, 1)", "(1, 2)"), testing::HasSubstr("shape"));
}

// JSON's members have no order, and programs write them in others.
TEST(JsonMatrix, IsReadInAnyOrder) {
  Matrix back;
  const auto problem = [&](std::string_view text) { return std::string(decode_matrix_json(text, back).message()); };
  for (const std::string_view text : {R"({"rows":1,"columns":2,"type":"i8","elements":[7,-8]})",
                                      R"({ "columns": 2, "elements": [7, -8], "rows": 1, "type": "i8" })",
                                      R"({"elements":[7,-8],"type":"i8","columns":2,"rows":1})"}) {
    EXPECT_EQ(problem(text), "") << text;
    EXPECT_EQ(back.rows, 1U);
    EXPECT_EQ(back.columns, 2U);
    EXPECT_EQ(std::get<std::vector<std::int64_t>>(back.elements), (std::vector<std::int64_t>{7, -8}));
  }
  EXPECT_THAT(problem(R"({"elements":[7,1.5],"type":"i8","columns":2,"rows":1})"), testing::HasSubstr("at byte 16"));
  EXPECT_THAT(problem(R"({"elements":[7,-8],"type":"i8","columns":2,"rows":2})"), testing::HasSubstr("elements"));
  EXPECT_THAT(problem(R"({"rows":1,"rows":1,"columns":1,"type":"f8","elements":[1]})"), testing::HasSubstr("twice"));
  EXPECT_THAT(problem(R"({"elements":[1,"type":"f8"})"), testing::HasSubstr("no end"));
  EXPECT_NE(problem(R"({"rows":1,"columns":1,"elements":[1]})"), "");
}

std::string json_of(const Batch& batch) {
  std::string bytes;
  EXPECT_TRUE(make_json_codec()->encode(batch, bytes).ok());
  return bytes;
}

TEST(Json, IsReadable) {
  Batch batch;
  batch.runs = {{model::SeriesId{4}, 0, 2}, {model::SeriesId{9}, 2, 3}};
  batch.times = {model::from_ns(5), model::from_ns(6), model::from_ns(-7)};
  batch.values = {1.5, -0.001, 1e300};
  EXPECT_EQ(json_of(batch), R"({"series":[4,9],"lengths":[2,1],"times":[5,6,-7],"values":[1.5,-0.001,1e+300]})");
  batch.paces = {{model::from_ns(5), model::Duration(10)}, {model::from_ns(0), {}}};
  batch.times.clear();
  batch.values.clear();
  batch.scaled = {15000, -7, 120};
  batch.decimals = 3;
  EXPECT_EQ(json_of(batch),
            R"({"series":[4,9],"lengths":[2,1],"starts":[5,0],"steps":[10,0],"decimals":3,"values":[15,-0.007,0.12]})");
}

// RFC 8259 has fewer numbers than the libraries that read them.
TEST(Json, IsStrict) {
  const auto reads = [](std::string_view value) {
    Batch back;
    const std::string text = fmt::format(R"( {{ "series" : [ 1 ] ,"lengths":[1],"times":[0],"values":[{}] }} )", value);
    return make_json_codec()->decode(text, back).ok();
  };
  for (const char* good : {"0", "-0", "1", "0.5", "-1.25e-3", "1E5", "1e+05", "123456789012345678901234567890", " 1 ",
                           "\"7ff8000000000001\""})
    EXPECT_TRUE(reads(good)) << good;
  for (const char* bad :
       {"",     "00",  "01",       "-",    "+1",    ".5", "1.", "1.e5", "1e",    "1e+",
        "inf",  "nan", "Infinity", "0x10", "1e999", "1,", ",1", "1 2",  "\"1\"", "\"3ff0000000000000\"",
        "null", "1_0"})
    EXPECT_FALSE(reads(bad)) << bad;
}

TEST(Json, DecimalsAreExactOrRefused) {
  const auto read = [](std::string_view value, std::vector<std::int32_t>& out) {
    Batch back;
    const std::string text =
        fmt::format(R"({{"series":[1],"lengths":[1],"times":[0],"decimals":3,"values":[{}]}})", value);
    const bool ok = make_json_codec()->decode(text, back).ok();
    out = back.scaled;
    return ok;
  };
  std::vector<std::int32_t> out;
  EXPECT_TRUE(read("-2147483.648", out));
  EXPECT_EQ(out, std::vector<std::int32_t>{INT32_MIN});
  EXPECT_TRUE(read("2147483.647", out));
  EXPECT_TRUE(read("0.5", out));
  EXPECT_EQ(out, std::vector<std::int32_t>{500});
  for (const char* bad : {"2147483.648", "-2147483.649", "0.0001", "1e3", "-0", "99999999999999999999", "1.", "01"})
    EXPECT_FALSE(read(bad, out)) << bad;
}

TEST(Raw, IsUsedWithoutCopying) {
  base::SeededRandom random(28);
  const Batch batch = made_batch(Shape::kSorted, 1000, random);
  std::string bytes;
  ASSERT_TRUE(make_raw_codec()->encode(batch, bytes).ok());
  std::vector<std::uint64_t> memory(bytes.size() / 8 + 2);
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  const std::string_view there(reinterpret_cast<const char*>(memory.data()), bytes.size());
  const absl::StatusOr<RawView> view = view_raw(there);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(std::vector<double>(view->values.begin(), view->values.end()), batch.values);
  EXPECT_GE(static_cast<const void*>(view->values.data()), there.data());
  EXPECT_LT(static_cast<const void*>(view->values.data()), there.data() + there.size());
  EXPECT_EQ(view->times[999], model::to_ns(batch.times[999]));
  const std::string_view shifted(there.data() + 1, there.size() - 1);
  EXPECT_THAT(std::string(view_raw(shifted).status().message()), testing::HasSubstr("multiple of 8"));
}

// By the encoding guide of protobuf: series 3, time 1, value 1.0.
TEST(Protobuf, RowsAreMessages) {
  Batch batch;
  batch.runs = {{model::SeriesId{3}, 0, 1}};
  batch.times = {model::from_ns(1)};
  batch.values = {1.0};
  std::string bytes;
  ASSERT_TRUE(make_protobuf_codec()->encode(batch, bytes).ok());
  EXPECT_EQ(bytes, std::string("\x0a\x0d\x08\x03\x10\x01\x19\x00\x00\x00\x00\x00\x00\xf0\x3f", 15));
}

}  // namespace
}  // namespace orla::codec
