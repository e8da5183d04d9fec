#include "node/matrix_codec.h"

#include <gtest/gtest.h>

namespace orla::node {
namespace {

using Format = function::MatrixCodec::Format;

TEST(MatrixCodec, ReadsMatricesOfEachFormat) {
  const EncodingsMatrixCodec codec;
  const function::NumberMatrix a{2, 2, {1, 2, 3, 4.5}};
  const function::NumberMatrix b{1, 2, {5, 6}};
  for (const Format format : {Format::kJson, Format::kNpy}) {
    const std::string first = *codec.encode(format, a);
    const std::string second = *codec.encode(format, b);
    const auto one = codec.decode(format, first, 1);
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ((*one)[0].elements, a.elements);
    const auto two =
        codec.decode(format, format == Format::kJson ? " [" + first + ",\n" + second + "] " : first + second, 2);
    ASSERT_TRUE(two.ok()) << two.status();
    EXPECT_EQ((*two)[0].rows, 2U);
    EXPECT_EQ((*two)[0].elements, a.elements);
    EXPECT_EQ((*two)[1].rows, 1U);
    EXPECT_EQ((*two)[1].elements, b.elements);
    EXPECT_FALSE(codec.decode(format, first, 2).ok());
    EXPECT_FALSE(codec.decode(format, first + first + first, 2).ok());
    EXPECT_FALSE(codec.decode(format, "", 1).ok());
  }
  const auto integers = codec.decode(Format::kJson, R"({"rows":1,"columns":2,"type":"i8","elements":[7,-8]})", 1);
  ASSERT_TRUE(integers.ok()) << integers.status();
  EXPECT_EQ((*integers)[0].elements, (std::vector<double>{7, -8}));
  EXPECT_FALSE(codec.decode(Format::kJson, R"([{"rows":1}}{,{"rows":1}])", 2).ok());
}

TEST(MatrixCodec, ANumberThatLooksLikeTheNextFileIsNone) {
  const EncodingsMatrixCodec codec;
  double tricky = 0;
  static constexpr char kBytes[] = "\x93NUMPY\x01";
  __builtin_memcpy(&tricky, kBytes, 8);
  const function::NumberMatrix a{1, 3, {1, tricky, 2}};
  const std::string file = *codec.encode(Format::kNpy, a);
  const auto two = codec.decode(Format::kNpy, file + file, 2);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ((*two)[0].elements.size(), 3U);
  EXPECT_EQ((*two)[1].elements.size(), 3U);
}

}  // namespace
}  // namespace orla::node
