#include "link/wire_shape.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace orla::link {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using Input = google::protobuf::io::CodedInputStream;

constexpr int kMaxDepth = 16;

// Elements a packed field of so many bytes can have at most: the least a value takes.
std::size_t packed_elements(const FieldDescriptor& field, std::size_t bytes) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
    case FieldDescriptor::TYPE_DOUBLE:
      return bytes / 8;
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
    case FieldDescriptor::TYPE_FLOAT:
      return bytes / 4;
    default:
      return bytes;
  }
}

class Walker {
 public:
  explicit Walker(std::size_t max_elements) : left_(max_elements) {}

  absl::Status walk(Input& input, const Descriptor& type, int depth) {
    if (depth > kMaxDepth) return absl::ResourceExhaustedError("messages nest too deeply");
    const auto malformed = [&] {
      return absl::InvalidArgumentError(fmt::format("{}: these bytes are no protobuf message", type.name()));
    };
    while (true) {
      const std::uint32_t tag = input.ReadTag();
      if (tag == 0) return input.ConsumedEntireMessage() ? absl::OkStatus() : malformed();
      const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        // Groups (which no field here is) would be kept as unknown fields: nothing that is sent has one.
        if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_START_GROUP) return malformed();
        if (!WireFormatLite::SkipField(&input, tag)) return malformed();
        // A field that is not known is kept too, a small object each.
        if (const absl::Status taken = take(field == nullptr || field->is_repeated() ? 1 : 0); !taken.ok())
          return taken;
        continue;
      }
      std::uint32_t size = 0;
      if (!input.ReadVarint32(&size)) return malformed();
      if (field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE) {
        if (const absl::Status taken = take(1); !taken.ok()) return taken;
        const auto limit = input.PushLimit(static_cast<int>(size));
        if (input.BytesUntilLimit() != static_cast<int>(size)) return malformed();
        if (absl::Status inner = walk(input, *field->message_type(), depth + 1); !inner.ok()) return inner;
        input.PopLimit(limit);
        continue;
      }
      const bool packed = field != nullptr && field->is_packable();
      if (const absl::Status taken = take(packed ? packed_elements(*field, size) : 1); !taken.ok()) return taken;
      if (!input.Skip(static_cast<int>(size))) return malformed();
    }
  }

 private:
  absl::Status take(std::size_t elements) {
    if (elements > left_) return absl::ResourceExhaustedError("a message with too many elements");
    left_ -= elements;
    return absl::OkStatus();
  }
  std::size_t left_;
};

}  // namespace

absl::Status check_shape(std::string_view bytes, const Descriptor& type, std::size_t max_elements) {
  Input input(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  return Walker(max_elements).walk(input, type, 0);
}

}  // namespace orla::link
