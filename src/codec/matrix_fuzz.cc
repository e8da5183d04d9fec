// Every decoder of matrices takes any bytes: the first byte chooses the encoding. What it accepts comes back.
#include <cstdlib>

#include "codec/encodings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto table = orla::codec::matrix_encodings();
  const orla::codec::MatrixEncoding& encoding = table[data[0] % table.size()];
  orla::codec::Matrix matrix;
  if (!encoding.decode(std::string_view(reinterpret_cast<const char*>(data + 1), size - 1), matrix).ok()) return 0;
  std::string once;
  std::string twice;
  orla::codec::Matrix back;
  if (!encoding.encode(matrix, once).ok() || !encoding.decode(once, back).ok()) std::abort();
  if (!encoding.encode(back, twice).ok() || once != twice) std::abort();
  return 0;
}
