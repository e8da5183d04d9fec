// What the gRPC carrier adds to the messages, at the level of bytes: a large one travels in pieces, with heartbeats
// between them, and each end confirms what it has received. proto/link.proto, Piece and Received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace orla::link {

// What a marked message begins with.
inline constexpr std::string_view kMark("\x68\x01", 2);

// Bytes of an encoded Up or Down to bytes of another, of the kind `piece`.
std::string encode_piece(std::string_view content, bool last);
// An Up or Down of the kind `received`.
std::string encode_received(std::uint64_t bytes);

// What one message of gRPC turned out to be.
struct Parcel {
  enum class Kind : std::uint8_t {
    kMessage,   // a whole one, in `content`; nothing when only the mark is there
    kPiece,     // one that goes on in the next piece
    kLast,      // the last piece of one
    kReceived,  // a confirmation
  };
  Kind kind = Kind::kMessage;
  std::string_view content;  // inside the bytes that were opened
  std::uint64_t received = 0;
  bool marked = false;    // the peer wants to know that it has come
  std::size_t bytes = 0;  // that count for Received
};

// InvalidArgument says what is wrong with a piece or a confirmation. Of a whole message nothing is looked at.
absl::StatusOr<Parcel> open_parcel(std::string_view bytes);

// Puts pieces together. At most kMaxMessageBytes are held.
class PieceJoiner {
 public:
  // InvalidArgument for a piece that brings nothing and is not the last; ResourceExhausted when the message gets too
  // large.
  absl::Status add(const Parcel& piece);
  // After the last piece: the whole message.
  std::string take();

 private:
  std::string joined_;
};

}  // namespace orla::link
