// Any bytes as one parcel, and cut into several that are put together: what is opened lies inside the bytes and is
// written back with the same meaning, and no more is held than a message may have.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "link/pieces.h"
#include "link/proto_codec.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void open(std::string_view bytes, orla::link::PieceJoiner& joiner) {
  using Kind = orla::link::Parcel::Kind;
  const absl::StatusOr<orla::link::Parcel> parcel = orla::link::open_parcel(bytes);
  if (!parcel.ok()) return;
  require(parcel->content.empty() || (parcel->content.data() >= bytes.data() &&
                                      parcel->content.data() + parcel->content.size() <= bytes.data() + bytes.size()));
  if (parcel->kind == Kind::kReceived) {
    const std::string written = orla::link::encode_received(parcel->received);
    const absl::StatusOr<orla::link::Parcel> again = orla::link::open_parcel(written);
    require(again.ok() && again->kind == Kind::kReceived && again->received == parcel->received);
  }
  if (parcel->kind != Kind::kPiece && parcel->kind != Kind::kLast) return;
  const std::string written = orla::link::encode_piece(parcel->content, parcel->kind == Kind::kLast);
  const absl::StatusOr<orla::link::Parcel> again = orla::link::open_parcel(written);
  require(again.ok() && again->kind == parcel->kind && again->content == parcel->content);
  if (joiner.add(*parcel).ok() && parcel->kind == Kind::kLast)
    require(joiner.take().size() <= orla::link::kMaxMessageBytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  orla::link::PieceJoiner whole;
  open(bytes, whole);
  // The first byte of each part says how long it is.
  orla::link::PieceJoiner parts;
  for (std::string_view left = bytes; !left.empty();) {
    const std::size_t length = std::min<std::size_t>(static_cast<unsigned char>(left[0]), left.size() - 1);
    open(left.substr(1, length), parts);
    left.remove_prefix(1 + length);
  }
  return 0;
}
