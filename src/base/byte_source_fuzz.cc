// Any bytes, taken as a compressed file: no crash, the same result however they are cut, bounded output.
#include <cstdlib>
#include <string>
#include <utility>

#include "base/byte_source.h"

namespace {

constexpr std::size_t kEnoughBytes = 1 << 20;

std::pair<std::string, absl::StatusCode> drain(const std::string& raw, std::size_t piece, std::size_t at_once) {
  auto source = orla::base::decompress(orla::base::bytes_in_memory(raw, piece), "input");
  if (!source.ok()) return {"", source.status().code()};
  std::string all;
  std::string part(at_once, '\0');
  while (all.size() < kEnoughBytes) {
    absl::StatusOr<std::size_t> n = (*source)->read(part);
    if (!n.ok()) return {all, n.status().code()};
    if (*n == 0) break;
    all.append(part, 0, *n);
  }
  return {all, absl::StatusCode::kOk};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string raw(reinterpret_cast<const char*>(data), size);
  const auto whole = drain(raw, raw.size() + 1, 4096);
  const auto cut = drain(raw, 3, 4096);
  if (whole.first.size() < kEnoughBytes && whole != cut) std::abort();
  return 0;
}
