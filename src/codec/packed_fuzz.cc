// decode_packed takes any bytes; what it accepts comes back from the encoder, however it is written.
#include <cstdlib>

#include "codec/batches_for_tests.h"
#include "codec/envelope.h"
#include "codec/packed.h"

namespace {

void check(std::string_view bytes) {
  orla::model::Batch batch;
  if (!orla::codec::decode_packed(bytes, batch).ok()) return;
  const absl::StatusOr<std::string> again = orla::codec::encode_packed(batch);
  orla::model::Batch back;
  if (!again.ok() || !orla::codec::decode_packed(*again, back).ok()) std::abort();
  if (!orla::codec::difference(batch, back).empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  // As the body of an intact envelope: the checksum would otherwise turn nearly everything away.
  std::string intact = orla::codec::begin_envelope({'B', 1, ""});
  intact += bytes;
  orla::codec::end_envelope(intact);
  check(intact);
  return 0;
}
