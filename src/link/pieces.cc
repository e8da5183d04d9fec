#include "link/pieces.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <utility>

#include "link.pb.h"
#include "link/proto_codec.h"

namespace orla::link {

namespace {

namespace wire = ::orla::link::v1;
using google::protobuf::internal::WireFormatLite;
using Input = google::protobuf::io::CodedInputStream;
using Output = google::protobuf::io::CodedOutputStream;

constexpr std::uint32_t tag_of(int field, WireFormatLite::WireType type) {
  return static_cast<std::uint32_t>(field) << 3 | static_cast<std::uint32_t>(type);
}
constexpr auto kBytes = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
constexpr auto kVarint = WireFormatLite::WIRETYPE_VARINT;
constexpr std::uint32_t kPieceTag = tag_of(wire::Up::kPieceFieldNumber, kBytes);
constexpr std::uint32_t kReceivedTag = tag_of(wire::Up::kReceivedFieldNumber, kBytes);
static_assert(int{wire::Up::kPieceFieldNumber} == int{wire::Down::kPieceFieldNumber});
static_assert(int{wire::Up::kReceivedFieldNumber} == int{wire::Down::kReceivedFieldNumber});
// Tags of one byte.
static_assert(kPieceTag < 0x80 && kReceivedTag < 0x80);
static_assert(kMark[0] == static_cast<char>(tag_of(wire::Up::kMarkFieldNumber, kVarint)) && kMark[1] == 1);
static_assert(int{wire::Up::kMarkFieldNumber} == int{wire::Down::kMarkFieldNumber});

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

absl::Status malformed(std::string_view field, std::size_t bytes) {
  return absl::InvalidArgumentError(
      fmt::format("{}: found {} bytes that are none, expected a message of link.proto "
                  "with nothing before or after it",
                  field, bytes));
}

// The inside of a piece or a confirmation, field by field; `take` gets the number, the value, or else the bytes.
template <typename Take>
bool read_fields(Input& input, const char* begin, Take take) {
  while (const std::uint32_t tag = input.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    if (WireFormatLite::GetTagWireType(tag) == kVarint) {
      std::uint64_t value = 0;
      if (!input.ReadVarint64(&value)) return false;
      take(field, value, std::string_view());
    } else if (WireFormatLite::GetTagWireType(tag) == kBytes) {
      std::uint32_t size = 0;
      if (!input.ReadVarint32(&size)) return false;
      const int at = input.CurrentPosition();
      if (!input.Skip(static_cast<int>(size))) return false;
      take(field, 0, std::string_view(begin + at, size));
    } else if (!WireFormatLite::SkipField(&input, tag)) {
      return false;
    }
  }
  return input.ConsumedEntireMessage();
}

}  // namespace

std::string encode_piece(std::string_view content, bool last) {
  constexpr std::uint32_t kContentTag = tag_of(wire::Piece::kContentFieldNumber, kBytes);
  constexpr std::uint32_t kLastTag = tag_of(wire::Piece::kLastFieldNumber, kVarint);
  const std::size_t inside = 1 + Output::VarintSize64(content.size()) + content.size() + (last ? 2 : 0);
  std::string out;
  out.reserve(1 + Output::VarintSize64(inside) + inside);
  put_varint(out, kPieceTag);
  put_varint(out, inside);
  put_varint(out, kContentTag);
  put_varint(out, content.size());
  out.append(content);
  if (last) {
    put_varint(out, kLastTag);
    put_varint(out, 1);
  }
  return out;
}

std::string encode_received(std::uint64_t bytes) {
  std::string out;
  put_varint(out, kReceivedTag);
  put_varint(out, 1 + Output::VarintSize64(bytes));
  put_varint(out, tag_of(wire::Received::kBytesFieldNumber, kVarint));
  put_varint(out, bytes);
  return out;
}

absl::StatusOr<Parcel> open_parcel(std::string_view bytes) {
  Parcel parcel;
  parcel.marked = bytes.starts_with(kMark);
  if (parcel.marked) bytes.remove_prefix(kMark.size());
  parcel.content = bytes;
  parcel.bytes = bytes.size();
  const std::uint32_t kind = bytes.empty() ? 0 : static_cast<unsigned char>(bytes.front());
  if (kind != kPieceTag && kind != kReceivedTag) return parcel;
  const std::string_view field = kind == kPieceTag ? "piece" : "received";
  Input input(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  std::uint32_t size = 0;
  input.ReadTag();
  if (!input.ReadVarint32(&size) || size != bytes.size() - static_cast<std::size_t>(input.CurrentPosition())) {
    return malformed(field, bytes.size());
  }
  bool read = false;
  if (kind == kPieceTag) {
    parcel.kind = Parcel::Kind::kPiece;
    parcel.content = {};
    read = read_fields(input, bytes.data(), [&](int number, std::uint64_t value, std::string_view content) {
      if (number == wire::Piece::kContentFieldNumber) parcel.content = content;
      if (number == wire::Piece::kLastFieldNumber && value != 0) parcel.kind = Parcel::Kind::kLast;
    });
  } else {
    parcel.kind = Parcel::Kind::kReceived;
    parcel.content = {};
    parcel.bytes = 0;
    read = read_fields(input, bytes.data(), [&](int number, std::uint64_t value, std::string_view) {
      if (number == wire::Received::kBytesFieldNumber) parcel.received = value;
    });
  }
  if (!read) return malformed(field, bytes.size());
  return parcel;
}

absl::Status PieceJoiner::add(const Parcel& piece) {
  if (piece.content.empty() && piece.kind == Parcel::Kind::kPiece) {
    return absl::InvalidArgumentError("piece.content: found nothing, expected bytes of a message that goes on");
  }
  if (joined_.size() + piece.content.size() > kMaxMessageBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("piece.content: found {} bytes with the pieces before it, expected at most {}, the largest message",
                    joined_.size() + piece.content.size(), kMaxMessageBytes));
  }
  joined_.append(piece.content);
  return absl::OkStatus();
}

std::string PieceJoiner::take() { return std::exchange(joined_, {}); }

}  // namespace orla::link
