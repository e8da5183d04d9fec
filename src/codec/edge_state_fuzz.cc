// decode_edge_state takes any bytes; what it accepts comes back from encode_edge_state.
#include <cstdlib>

#include "codec/edge_state.h"
#include "codec/envelope.h"

namespace {

void check(std::string_view bytes) {
  const absl::StatusOr<orla::model::EdgeState> value = orla::codec::decode_edge_state(bytes);
  if (!value.ok()) return;
  const absl::StatusOr<orla::model::EdgeState> again =
      orla::codec::decode_edge_state(orla::codec::encode_edge_state(*value));
  if (!again.ok() || *again != *value) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  // As the body of an intact envelope: the checksum would otherwise turn nearly everything away.
  for (const std::uint8_t version : {1, 2, 3}) {
    std::string intact = orla::codec::begin_envelope({'S', version, ""});
    intact += bytes;
    orla::codec::end_envelope(intact);
    check(intact);
  }
  return 0;
}
