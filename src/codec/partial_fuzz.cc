// decode_partial takes any bytes; what it accepts comes back from encode_partial.
#include <cstdlib>

#include "codec/envelope.h"
#include "codec/partial.h"

namespace {

void check(std::string_view bytes) {
  const absl::StatusOr<orla::model::Partial> value = orla::codec::decode_partial(bytes);
  if (!value.ok()) return;
  const absl::StatusOr<orla::model::Partial> again = orla::codec::decode_partial(orla::codec::encode_partial(*value));
  if (!again.ok() || *again != *value) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  // As the body of an intact envelope: the checksum would otherwise turn nearly everything away.
  for (const std::uint8_t version : {1, 2}) {
    std::string intact = orla::codec::begin_envelope({'P', version, ""});
    intact += bytes;
    orla::codec::end_envelope(intact);
    check(intact);
  }
  return 0;
}
