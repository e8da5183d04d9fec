// Durations, windows and addresses: what is taken can be written and read again as the same value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "model/address.h"
#include "model/window.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orla::model;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto duration = parse_duration(text); duration.ok()) {
    const auto again = parse_duration(to_string(*duration));
    if (!again.ok() || *again != *duration) std::abort();
  }
  if (const auto window = parse_window(text); window.ok()) {
    const auto again = parse_window(to_string(*window));
    if (!again.ok() || !(*again == *window)) std::abort();
  }
  if (const auto address = parse_address(text); address.ok()) {
    const auto again = parse_address(to_string(*address));
    if (!again.ok() || !(*again == *address)) std::abort();
  }
  return 0;
}
