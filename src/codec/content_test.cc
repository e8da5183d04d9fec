#include "codec/content.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "codec/rows.h"

namespace orla::codec {
namespace {

using model::Batch;
using model::Content;
using model::GroupId;
using model::PartialRow;
using model::SampleBlock;
using model::SeriesId;

model::PartialRows some_rows() {
  PartialRow row{GroupId{3}, model::from_ns(60'000'000'000), {}};
  row.partial.add(model::from_ns(61'000'000'000), 1.5, 3);
  return {row};
}

// Two runs: of group 7 integers, of group 2 one more.
Batch some_samples() {
  Batch batch;
  batch.decimals = 3;
  batch.scaled = {1500, 1501, -3};
  batch.runs = {{SeriesId{0}, 0, 2}, {SeriesId{1}, 2, 3}};
  batch.paces = {{model::from_ns(5), std::chrono::seconds(1)}, {model::from_ns(-9), {}}};
  return batch;
}

SampleBlock some_block() { return {{{GroupId{7}, 2}, {GroupId{2}, 1}}, encode_packed(some_samples()).value()}; }

TEST(Content, WithoutSamplesIsTheRowsByteForByte) {
  EXPECT_EQ(encode_content(some_rows(), {}), encode_rows(some_rows()));
  EXPECT_EQ(encode_content({}, {}), encode_rows({}));
  EXPECT_EQ(decode_content(encode_rows(some_rows())).value(), (Content{some_rows(), {}}));
}

TEST(Content, ComesBack) {
  const Content content{some_rows(), {some_block(), some_block()}};
  EXPECT_EQ(decode_content(encode_content(content.rows, content.samples)).value(), content);
  const Content no_rows{{}, {some_block()}};
  EXPECT_EQ(decode_content(encode_content({}, no_rows.samples)).value(), no_rows);
  EXPECT_EQ(model::sample_count(content.samples), 6u);
}

TEST(Content, EveryDamagedOrMissingByteIsNoticed) {
  const std::string bytes = encode_content(some_rows(), {some_block()});
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_FALSE(decode_content(damaged).ok()) << i;
    EXPECT_FALSE(decode_content(bytes.substr(0, i)).ok()) << i;
  }
}

TEST(Content, RefusesWhatNoEncoderWrites) {
  EXPECT_FALSE(decode_content(encode_content({}, {SampleBlock{{}, "x"}})).ok());
  // One sample more than a block may have.
  const SampleBlock large{{{GroupId{1}, kMaxBlockSamples}, {GroupId{2}, 1}}, "x"};
  const absl::Status status = decode_content(encode_content({}, {large})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  const SampleBlock most{{{GroupId{1}, kMaxBlockSamples}}, "x"};
  EXPECT_TRUE(decode_content(encode_content({}, {most})).ok());
}

TEST(Content, ABlockSaysWhatIsInItsPayload) {
  PackedDecoder decoder;
  Batch out;
  ASSERT_TRUE(decode_block(decoder, some_block(), out).ok());
  EXPECT_EQ(out.scaled, some_samples().scaled);
  SampleBlock other = some_block();
  other.runs[0].count = 1;
  other.runs[1].count = 2;
  EXPECT_EQ(decode_block(decoder, other, out).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(out.size(), 0u);
  other = some_block();
  other.runs.pop_back();
  EXPECT_EQ(decode_block(decoder, other, out).code(), absl::StatusCode::kInvalidArgument);
  Batch numbered = some_samples();
  numbered.runs[1].series = SeriesId{5};
  other = some_block();
  other.payload = encode_packed(numbered).value();
  EXPECT_EQ(decode_block(decoder, other, out).code(), absl::StatusCode::kInvalidArgument);
  other.payload[10] = static_cast<char>(other.payload[10] ^ 1);
  EXPECT_EQ(decode_block(decoder, other, out).code(), absl::StatusCode::kDataLoss);
}

TEST(Content, ValuesAreKeptToTheBitAndAreNumbers) {
  Batch batch;
  batch.values = {-0.0, 0.1 + 0.2, 1e300, std::numeric_limits<double>::denorm_min()};
  batch.times = {model::from_ns(4), model::from_ns(4), model::from_ns(1), model::from_ns(2)};
  batch.runs = {{SeriesId{0}, 0, 4}};
  SampleBlock block{{{GroupId{0}, 4}}, encode_packed(batch).value()};
  PackedDecoder decoder;
  Batch out;
  ASSERT_TRUE(decode_block(decoder, block, out).ok());
  out.make_plain();
  EXPECT_EQ(out.times, batch.times);
  for (std::size_t i = 0; i < batch.values.size(); ++i)
    EXPECT_EQ(std::bit_cast<std::uint64_t>(out.values[i]), std::bit_cast<std::uint64_t>(batch.values[i])) << i;
  batch.values[2] = std::nan("");
  block.payload = encode_packed(batch).value();
  EXPECT_EQ(decode_block(decoder, block, out).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace orla::codec
