// Any bytes into both decoders: what they accept is encoded to bytes that mean the same.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "link/proto_codec.h"

namespace {

template <typename Message, typename Decode>
void round_trip(std::string_view bytes, Decode decode) {
  const absl::StatusOr<std::optional<Message>> message = decode(bytes);
  if (!message.ok() || !message->has_value()) return;
  const absl::StatusOr<std::vector<std::string>> encoded = orla::link::encode(**message);
  // What is accepted can be sent; only splitting makes several of one.
  if (!encoded.ok() || encoded->empty()) std::abort();
  if (encoded->size() > 1) return;
  const absl::StatusOr<std::optional<Message>> again = decode(encoded->front());
  if (!again.ok() || !again->has_value() || **again != **message) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  [[maybe_unused]] static auto* const silent = google::protobuf::SetLogHandler(nullptr);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  round_trip<orla::link::UpMessage>(bytes, orla::link::decode_up);
  round_trip<orla::link::DownMessage>(bytes, orla::link::decode_down);
  return 0;
}
