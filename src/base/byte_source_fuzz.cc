// Any bytes, taken as a compressed file: no crash, bounded output, the same bytes and end however the input is cut. Of
// a damaged frame, zstd hands out more or fewer of the blocks before the damage, depending on the cut.
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
  if (whole.first.size() >= kEnoughBytes || cut.first.size() >= kEnoughBytes) return 0;
  if (whole.second != cut.second) std::abort();
  if (whole.second == absl::StatusCode::kOk && whole.first != cut.first) std::abort();
  if (!whole.first.starts_with(cut.first) && !cut.first.starts_with(whole.first)) std::abort();
  return 0;
}
