#include "link/pieces.h"

#include <gtest/gtest.h>

#include "link.pb.h"
#include "link/proto_codec.h"

namespace orla::link {
namespace {

namespace wire = ::orla::link::v1;

// What is written by hand is what the library of protobuf makes of link.proto.
TEST(Pieces, BytesAreThoseOfLinkProto) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{127}, std::size_t{128}, std::size_t{70'000}}) {
    for (const bool last : {true, false}) {
      wire::Up up;
      up.mutable_piece()->set_content(std::string(size, 'x'));
      up.mutable_piece()->set_last(last);
      wire::Up parsed;
      ASSERT_TRUE(parsed.ParseFromString(encode_piece(std::string(size, 'x'), last)));
      EXPECT_EQ(parsed.SerializeAsString(), up.SerializeAsString()) << size;
      ASSERT_TRUE(open_parcel(up.SerializeAsString()).ok());
    }
  }
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{300}, ~std::uint64_t{0}}) {
    wire::Down parsed;
    ASSERT_TRUE(parsed.ParseFromString(encode_received(bytes)));
    EXPECT_TRUE(parsed.has_received());
    EXPECT_EQ(parsed.received().bytes(), bytes);
    wire::Down down;
    down.mutable_received()->set_bytes(bytes);
    EXPECT_EQ(open_parcel(down.SerializeAsString())->received, bytes);
  }
  wire::Up marked;
  marked.set_mark(true);
  EXPECT_EQ(marked.SerializeAsString(), kMark);
}

TEST(Pieces, OfAMessageMakeTheMessageAgain) {
  const std::string message = *encode(UpMessage(FrameMessage{7, {}, std::string(1'000, 'r')}))->begin();
  PieceJoiner joiner;
  for (std::size_t at = 0; at < message.size(); at += 300) {
    const std::string_view content = std::string_view(message).substr(at, 300);
    const std::string piece = std::string(kMark) + encode_piece(content, at + 300 >= message.size());
    const absl::StatusOr<Parcel> parcel = open_parcel(piece);
    ASSERT_TRUE(parcel.ok());
    EXPECT_TRUE(parcel->marked);
    EXPECT_EQ(parcel->bytes, piece.size() - kMark.size());
    EXPECT_EQ(parcel->content, content);
    EXPECT_EQ(parcel->kind, at + 300 >= message.size() ? Parcel::Kind::kLast : Parcel::Kind::kPiece);
    ASSERT_TRUE(joiner.add(*parcel).ok());
  }
  EXPECT_EQ(joiner.take(), message);
  EXPECT_EQ(joiner.take(), "");
}

TEST(Pieces, AWholeMessageIsLeftAlone) {
  const std::string message = *encode(UpMessage(Hello{1, 0, "fleet", "edge", model::Layer::kEdge}))->begin();
  const std::string with_mark = std::string(kMark) + message;
  for (const std::string* bytes : {&message, &with_mark}) {
    const absl::StatusOr<Parcel> parcel = open_parcel(*bytes);
    ASSERT_TRUE(parcel.ok());
    EXPECT_EQ(parcel->kind, Parcel::Kind::kMessage);
    EXPECT_EQ(parcel->content, message);
    EXPECT_EQ(parcel->bytes, message.size());
    EXPECT_EQ(parcel->marked, bytes == &with_mark);
    EXPECT_TRUE(decode_up(*bytes).ok());  // the mark says nothing to others
  }
  EXPECT_EQ(open_parcel("")->content, "");
}

TEST(Pieces, WhatIsCutOrFollowedIsRefused) {
  const std::string piece = encode_piece("content", true);
  for (std::size_t size = 1; size < piece.size(); ++size) {
    EXPECT_FALSE(open_parcel(piece.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(open_parcel(piece + encode_received(1)).ok());
  EXPECT_FALSE(open_parcel(encode_received(1) + piece).ok());
  EXPECT_FALSE(open_parcel("\x72\xff\xff\xff\xff\xff\xff").ok());
}

TEST(Pieces, AddUpToTheLargestMessageOnly) {
  const std::string mib(1 << 20, 'x');
  PieceJoiner joiner;
  const Parcel piece{Parcel::Kind::kPiece, mib, 0, false, 0};
  for (std::size_t bytes = 0; bytes < kMaxMessageBytes; bytes += mib.size()) ASSERT_TRUE(joiner.add(piece).ok());
  EXPECT_EQ(joiner.add(piece).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(joiner.add({Parcel::Kind::kPiece, "", 0, false, 0}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(joiner.add({Parcel::Kind::kLast, "", 0, false, 0}).ok());
}

}  // namespace
}  // namespace orla::link
