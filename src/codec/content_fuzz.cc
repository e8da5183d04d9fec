// decode_content takes any bytes; what it accepts comes back from encode_content, and its blocks can be looked into.
#include <cstdlib>

#include "codec/content.h"
#include "codec/envelope.h"

namespace {

void check(std::string_view bytes) {
  const absl::StatusOr<orla::model::Content> value = orla::codec::decode_content(bytes);
  if (!value.ok()) return;
  const absl::StatusOr<orla::model::Content> again =
      orla::codec::decode_content(orla::codec::encode_content(value->rows, value->samples));
  if (!again.ok() || !(*again == *value)) std::abort();
  orla::codec::PackedDecoder decoder;
  orla::model::Batch batch;
  for (const orla::model::SampleBlock& block : value->samples) {
    if (!orla::codec::decode_block(decoder, block, batch).ok() && batch.size() > 0) std::abort();
    if (batch.size() > 0 && batch.runs.size() != block.runs.size()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  // As the body of an intact envelope: the checksum would otherwise turn nearly everything away.
  std::string intact = orla::codec::begin_envelope({'C', 1, ""});
  intact += bytes;
  orla::codec::end_envelope(intact);
  check(intact);
  return 0;
}
