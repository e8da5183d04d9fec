// Every decoder of the table takes any bytes: the first byte chooses the encoding. What it accepts is a batch whose
// columns fit together, and comes back from the encoder.
#include <cstdlib>

#include "codec/batches_for_tests.h"
#include "codec/encodings.h"
#include "codec/envelope.h"

namespace {

void check(orla::codec::SampleCodec& codec, std::string_view bytes) {
  orla::model::Batch batch;
  if (!codec.decode(bytes, batch).ok()) return;
  if (!orla::codec::check_columns(batch).ok() || orla::codec::check_paces(batch) != nullptr) std::abort();
  std::string again;
  orla::model::Batch back;
  if (!codec.encode(batch, again).ok() || !codec.decode(again, back).ok()) std::abort();
  if (!orla::codec::difference(batch, back).empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto table = orla::codec::sample_encodings();
  const std::unique_ptr<orla::codec::SampleCodec> codec = table[data[0] % table.size()].make();
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  check(*codec, bytes);
  // With a checksum that fits: it would otherwise turn nearly everything away.
  std::string intact(bytes);
  orla::codec::end_envelope(intact);
  check(*codec, intact);
  return 0;
}
