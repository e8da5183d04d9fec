#include "base/bytes.h"

#include <gtest/gtest.h>

namespace orla::base {
namespace {

std::string varint_bytes(std::uint64_t v) {
  std::string out;
  ByteWriter(out).varint(v);
  return out;
}

TEST(Bytes, VarintsAreThePublishedExamples) {
  // Protocol Buffers, "Encoding": 1 is 01, 150 is 96 01.
  EXPECT_EQ(varint_bytes(1), "\x01");
  EXPECT_EQ(varint_bytes(150), "\x96\x01");
  EXPECT_EQ(varint_bytes(UINT64_MAX).size(), 10u);
}

TEST(Bytes, ZigzagIsThePublishedTable) {
  EXPECT_EQ(zigzag(0), 0u);
  EXPECT_EQ(zigzag(-1), 1u);
  EXPECT_EQ(zigzag(1), 2u);
  EXPECT_EQ(zigzag(INT64_MAX), 0xfffffffffffffffeu);
  EXPECT_EQ(zigzag(INT64_MIN), 0xffffffffffffffffu);
  for (const std::int64_t v : {INT64_MIN, INT64_MIN + 1, std::int64_t{-5}, std::int64_t{0}, INT64_MAX})
    EXPECT_EQ(unzigzag(zigzag(v)), v);
  const Int128 least = static_cast<Int128>(UInt128{1} << 127);
  for (const Int128 v : {least, static_cast<Int128>(least + 1), Int128{-1}, Int128{0}, static_cast<Int128>(~least)})
    EXPECT_TRUE(unzigzag128(zigzag128(v)) == v);
}

TEST(Bytes, EveryWidthComesBack) {
  for (int bit = 0; bit < 128; ++bit) {
    for (int less = 0; less < 2; ++less) {
      const UInt128 v = (UInt128{1} << bit) - static_cast<unsigned>(less);
      std::string out;
      ByteWriter to(out);
      to.varint128(v);
      to.varint(static_cast<std::uint64_t>(v));
      ByteReader from(out);
      EXPECT_TRUE(from.varint128() == v);
      EXPECT_EQ(from.varint(), static_cast<std::uint64_t>(v));
      EXPECT_TRUE(from.finished());
    }
  }
}

TEST(Bytes, RefusesLongFormsOverflowAndTruncation) {
  const auto refuses = [](std::string_view bytes) {
    ByteReader from(bytes);
    EXPECT_EQ(from.varint(), 0u);
    return from.failed();
  };
  EXPECT_TRUE(refuses(std::string_view("\x80\x00", 2)));
  EXPECT_TRUE(refuses("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"));
  EXPECT_TRUE(refuses("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  EXPECT_TRUE(refuses("\x80"));
  EXPECT_TRUE(refuses(""));
  ByteReader from(
      std::string_view("\x05"
                       "abc",
                       4));
  EXPECT_EQ(from.text(), "");
  EXPECT_TRUE(from.failed());
  EXPECT_EQ(from.u64(), 0u);
  EXPECT_FALSE(from.finished());
}

}  // namespace
}  // namespace orla::base
