#include "codec/packed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/files.h"
#include "base/hash.h"
#include "base/random.h"
#include "codec/batches_for_tests.h"
#include "codec/envelope.h"
#include "hwy/targets.h"

namespace orla::codec {
namespace {

using model::Batch;
using model::from_ns;

constexpr std::int64_t kSecond = 1'000'000'000;

std::string packed(const Batch& batch, PackedOptions options = {}) {
  absl::StatusOr<std::string> bytes = encode_packed(batch, options);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *std::move(bytes);
}

Batch unpacked(std::string_view bytes) {
  Batch out;
  const absl::Status status = decode_packed(bytes, out);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

// `samples` of one series each second, all values 1.5.
Batch steady(std::size_t samples) {
  Batch batch;
  batch.runs.push_back({model::SeriesId{4}, 0, static_cast<std::uint32_t>(samples)});
  for (std::size_t i = 0; i < samples; ++i) {
    batch.times.push_back(from_ns(static_cast<std::int64_t>(i) * kSecond));
    batch.values.push_back(1.5);
  }
  return batch;
}

// Of runs, times and values as little-endian words.
std::uint64_t samples_hash(Batch batch) {
  batch.make_plain();
  std::string words;
  base::ByteWriter to(words);
  for (const Batch::Run& run : batch.runs) {
    to.u64(model::index(run.series));
    to.u64(run.end);
  }
  for (const model::Time t : batch.times) to.u64(static_cast<std::uint64_t>(model::to_ns(t)));
  for (const double v : batch.values) to.u64(std::bit_cast<std::uint64_t>(v));
  return base::hash64(words);
}

TEST(Packed, OneEncoderAndDecoderServeBatchAfterBatch) {
  base::SeededRandom random(11);
  PackedEncoder encoder;
  PackedDecoder decoder;
  std::string bytes;
  Batch back;
  for (const Shape shape : kShapes) {
    for (std::size_t samples = 0; samples <= 3000; samples += 97) {
      const Batch batch = made_batch(shape, samples, random);
      ASSERT_TRUE(encoder.encode(batch, bytes).ok());
      const absl::Status status = decoder.decode(bytes, back);
      ASSERT_TRUE(status.ok()) << status << ", shape " << static_cast<int>(shape) << ", " << samples << " samples";
      ASSERT_EQ(difference(batch, back), "") << "shape " << static_cast<int>(shape) << ", " << samples << " samples";
    }
  }
}

TEST(Packed, LargeFramesComeBackCompressedOrNot) {
  base::SeededRandom random(12);
  for (const Shape shape : kShapes) {
    const Batch batch = made_batch(shape, 100'000, random);
    const std::string plain = packed(batch);
    EXPECT_EQ(difference(batch, unpacked(plain)), "");
    const std::string again = packed(batch, {.zstd_level = 1});
    EXPECT_EQ(difference(batch, unpacked(again)), "");
    EXPECT_LT(again.size(), plain.size() + 1000);
  }
}

// The scalar code is plain loops; the others must give its bytes and its values.
TEST(Packed, EveryInstructionSetGivesTheSame) {
  std::int64_t sets = hwy::SupportedTargets();
  ASSERT_NE(sets, 0);
  for (const Shape shape : kShapes) {
    for (const std::size_t samples : {1, 7, 36, 300, 5000}) {
      std::string first;
      for (std::int64_t rest = sets; rest != 0; rest &= rest - 1) {
        base::SeededRandom random(samples);
        const Batch batch = made_batch(shape, samples, random);
        hwy::SetSupportedTargetsForTest(rest & -rest);
        const std::string bytes = packed(batch);
        if (first.empty()) first = bytes;
        EXPECT_EQ(difference(batch, unpacked(bytes)), "") << "instruction set " << (rest & -rest);
        EXPECT_EQ(bytes, first) << "instruction set " << (rest & -rest);
        hwy::SetSupportedTargetsForTest(0);
      }
    }
  }
}

TEST(Packed, DecimalsStayIntegersAndEvenTimesPaces) {
  const Batch back = unpacked(packed(steady(1000)));
  EXPECT_EQ(back.scaled, std::vector<std::int32_t>(1000, 15));
  EXPECT_EQ(back.decimals, 1);
  EXPECT_TRUE(back.values.empty());
  ASSERT_EQ(back.paces.size(), 1U);
  EXPECT_EQ(back.paces[0].start, from_ns(0));
  EXPECT_EQ(back.paces[0].step, model::Duration(kSecond));
  EXPECT_TRUE(back.times.empty());

  // One time off the pace: times. One value that is no decimal of 32 bits: doubles.
  Batch batch = steady(1000);
  batch.times[500] += model::Duration(1);
  batch.values[700] = std::nan("7");
  const Batch plain = unpacked(packed(batch));
  EXPECT_EQ(plain.times, batch.times);
  EXPECT_EQ(difference(batch, plain), "");
  EXPECT_TRUE(plain.scaled.empty());
  EXPECT_TRUE(plain.paces.empty());
}

TEST(Packed, TakesTheFewestDecimalsThatEveryValueHas) {
  Batch batch = steady(5000);
  batch.values[4321] = 0.125;
  EXPECT_EQ(unpacked(packed(batch)).decimals, 3);
  batch.values[4322] = 0.1 + 0.2;  // 0.30000000000000004
  const Batch back = unpacked(packed(batch));
  EXPECT_EQ(difference(batch, back), "");
  EXPECT_EQ(back.values.size(), 5000U);
}

TEST(Packed, MinusZeroIsNotZero) {
  Batch batch = steady(256);
  batch.values[9] = -0.0;
  EXPECT_TRUE(std::signbit(unpacked(packed(batch)).values.at(9)));
}

// Doubles next to decimals: the exact check must refuse them.
TEST(Packed, NeighboursOfDecimalsStayWhatTheyAre) {
  base::SeededRandom random(13);
  Batch batch = steady(20'000);
  for (double& value : batch.values) {
    value = static_cast<double>(random.below(1 << 30)) / std::pow(10, random.below(8));
    const std::uint64_t change = random.below(3);
    if (change == 1) value = std::nextafter(value, 1e9);
    if (change == 2) value = std::nextafter(value, -1e9);
  }
  EXPECT_EQ(difference(batch, unpacked(packed(batch))), "");
  for (double& value : batch.values) value = std::ldexp(1.0, static_cast<int>(random.below(60)) - 40);
  EXPECT_EQ(difference(batch, unpacked(packed(batch))), "");
}

// The largest integers that are `scaled`, and the first ones that are not, whichever code looks at them.
TEST(Packed, IntegersEndAt31BitsAndASign) {
  const std::int64_t sets = hwy::SupportedTargets();
  for (const double edge : {2147483647.0, -2147483647.0, 2147483648.0, -2147483648.0, 2147483.647, 2147483.648, 0.5}) {
    for (const std::size_t samples : {20, 43}) {
      Batch batch = steady(samples);
      for (double& value : batch.values) value = 1;
      batch.values[17] = edge;
      std::string first;
      for (std::int64_t rest = sets; rest != 0; rest &= rest - 1) {
        hwy::SetSupportedTargetsForTest(rest & -rest);
        const std::string bytes = packed(batch);
        const Batch back = unpacked(bytes);
        hwy::SetSupportedTargetsForTest(0);
        if (first.empty()) first = bytes;
        EXPECT_EQ(bytes, first);
        EXPECT_EQ(difference(batch, back), "");
        EXPECT_EQ(back.scaled.empty(), std::abs(edge) == 2147483648.0 || edge == 2147483.648) << edge;
      }
    }
  }
}

TEST(Packed, ConstantRunsTakeNextToNothing) { EXPECT_LT(packed(steady(1 << 16)).size(), 1500U); }

// As measured: 3 decimals around a level, a sample about each second.
TEST(Packed, NoiseOfFiveBitsTakesLittleMoreThanThat) {
  base::SeededRandom random(14);
  Batch batch = steady(65'536);
  for (double& value : batch.values) value = static_cast<double>(230'000 + random.below(32)) / 1000;
  EXPECT_LT(packed(batch).size(), 65'536 * 5 / 8 + 4 * 256 + 100);
}

TEST(Packed, DamagedBytesAreRefused) {
  base::SeededRandom random(15);
  Batch back;
  for (const Shape shape : {Shape::kSorted, Shape::kMixed, Shape::kPaced}) {
    const std::string bytes = packed(made_batch(shape, 300, random));
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(decode_packed(std::string_view(bytes).substr(0, size), back).ok());
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_FALSE(decode_packed(damaged, back).ok());
      EXPECT_EQ(back.size(), 0U);
    }
  }
}

// With a checksum that fits: never a crash, and what is accepted is a batch whose parts fit together.
TEST(Packed, WrongBytesWithARightChecksumAreRefusedOrABatch) {
  base::SeededRandom random(16);
  Batch back;
  for (int i = 0; i < 3000; ++i) {
    const Shape shape = kShapes[random.below(std::size(kShapes))];
    std::string bytes = packed(made_batch(shape, 1 + random.below(400), random));
    bytes.resize(bytes.size() - 8);
    for (std::uint64_t k = random.below(4); k-- > 0;)
      bytes[2 + random.below(bytes.size() - 2)] ^= static_cast<char>(1 << random.below(8));
    if (random.below(3) == 0) bytes.resize(2 + random.below(bytes.size() - 2));
    end_envelope(bytes);
    if (!decode_packed(bytes, back).ok()) continue;
    const absl::StatusOr<std::string> again = encode_packed(back);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(difference(back, unpacked(*again)), "");
  }
}

TEST(Packed, RefusesBatchesThatDoNotFitTogether) {
  Batch batch = steady(10);
  batch.runs[0].end = 9;
  EXPECT_THAT(std::string(encode_packed(batch).status().message()), testing::HasSubstr("cover 9 of 10"));
  batch = steady(10);
  batch.times.pop_back();
  EXPECT_EQ(encode_packed(batch).status().code(), absl::StatusCode::kInvalidArgument);
  batch = steady(kMaxPackedSamples + 1);
  EXPECT_THAT(std::string(encode_packed(batch).status().message()), testing::HasSubstr("split it"));
}

// Another version's frame is told apart from a damaged one.
TEST(Packed, NamesAVersionItDoesNotRead) {
  std::string bytes = packed(steady(3));
  bytes.resize(bytes.size() - 8);
  bytes[1] = 9;
  end_envelope(bytes);
  Batch back;
  EXPECT_EQ(decode_packed(bytes, back).code(), absl::StatusCode::kUnimplemented);
}

// A frame written by hand from the format's description: series 4, three samples at 10 s, 11 s, 13 s with 0.5, 0.7,
// -0.1.
TEST(Packed, ReadsAFrameWrittenByHand) {
  std::string bytes = begin_envelope({'B', 1, ""});
  bytes += static_cast<char>(3 << 3);  // seconds
  bytes += '\1';                       // one decimal
  bytes += "\3\1";                     // samples, runs
  base::ByteWriter(bytes).varint(base::zigzag(10 * kSecond));
  bytes += std::string("\x00\x08", 2);  // kFrame, width 0: series 4
  bytes += std::string("\x00\x06", 2);  // kFrame, width 0: length 3
  bytes += '\2';                        // one stretch: blocks
  // Times: kDelta, width 1; first 0 from the origin, least difference 1 s; differences 1 + {0, 1}.
  bytes += std::string("\x41\x00\x02\x02", 4);
  // Values 5, 7, -1: kFrame, width 4, base -1; 6, 8, 0.
  bytes += std::string("\x04\x01\x86\x00", 4);
  end_envelope(bytes);
  const Batch back = unpacked(bytes);
  EXPECT_EQ(back.times,
            (std::vector<model::Time>{from_ns(10 * kSecond), from_ns(11 * kSecond), from_ns(13 * kSecond)}));
  EXPECT_EQ(back.scaled, (std::vector<std::int32_t>{5, 7, -1}));
  EXPECT_EQ(back.decimals, 1);
  ASSERT_EQ(back.runs.size(), 1U);
  EXPECT_EQ(model::index(back.runs[0].series), 4U);
}

// Frames of version 1 as first written, and the hash of what each holds: they are read for ever.
TEST(Packed, GoldenFramesAreRead) {
  struct Golden {
    const char* name;
    std::uint64_t samples_hash;
  };
  constexpr Golden kGolden[] = {
      {"sorted", 0x38369f7de0f7f350},     {"random", 0xed8218171af2d9af}, {"paced", 0x8e1ce69ccae11d76},
      {"one-run", 0x3ad8e537be54f771},    {"mixed", 0x45a544d89ac4fa11},  {"doubles", 0xfa0747b28a6d4b11},
      {"smallest", 0x9dc4f5590fd53c34},   {"ints", 0xe473a4c2b9dfa2ad},   {"wide", 0xab86dd5a44a5e5f2},
      {"compressed", 0xb8b5b314bad3eed7},
  };
  for (const Golden& golden : kGolden) {
    const absl::StatusOr<std::string> bytes = base::read_file(std::string("tests/data/packed/") + golden.name, 1 << 20);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(samples_hash(unpacked(*bytes)), golden.samples_hash) << golden.name;
  }
}

}  // namespace
}  // namespace orla::codec
