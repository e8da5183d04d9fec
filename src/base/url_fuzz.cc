// Decoding never fails, never grows, and undoes encoding; a query's pairs encode to a query with the same pairs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orla::base;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (percent_decode(text, Plus::kSpace).size() > size) std::abort();
  if (percent_decode(percent_encode(text), Plus::kLiteral) != text) std::abort();
  const auto pairs = parse_query(text);
  std::string again;
  for (const auto& [name, value] : pairs) {
    again += (again.empty() ? "" : "&") + percent_encode(name) + "=" + percent_encode(value);
  }
  if (parse_query(again) != pairs) std::abort();
  return 0;
}
