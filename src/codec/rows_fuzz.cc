// decode_rows takes any bytes; what it accepts comes back from encode_rows.
#include <cstdlib>

#include "codec/envelope.h"
#include "codec/rows.h"

namespace {

void check(std::string_view bytes) {
  const absl::StatusOr<orla::model::PartialRows> value = orla::codec::decode_rows(bytes);
  if (!value.ok()) return;
  const absl::StatusOr<orla::model::PartialRows> again = orla::codec::decode_rows(orla::codec::encode_rows(*value));
  if (!again.ok() || *again != *value) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  // As the body of an intact envelope: the checksum would otherwise turn nearly everything away.
  for (const std::uint8_t version : {1, 2, 3}) {
    std::string intact = orla::codec::begin_envelope({'R', version, ""});
    intact += bytes;
    orla::codec::end_envelope(intact);
    check(intact);
  }
  return 0;
}
