#include "codec/envelope.h"

#include "base/hash.h"
#include "fmt/format.h"

namespace orla::codec {

namespace {
constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kHeaderBytes = 2;
}  // namespace

std::string begin_envelope(const Format& format) { return {format.kind, static_cast<char>(format.version)}; }

void end_envelope(std::string& bytes) {
  const std::uint64_t sum = base::hash64(bytes);
  base::ByteWriter(bytes).u64(sum);
}

absl::StatusOr<std::string_view> open_envelope(const Format& format, std::string_view bytes) {
  if (bytes.size() < kHeaderBytes + kChecksumBytes)
    return malformed(format, fmt::format("{} bytes are too few for a header and a checksum", bytes.size()));
  const std::string_view covered = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (base::ByteReader(bytes.substr(covered.size())).u64() != base::hash64(covered))
    return absl::DataLossError(
        fmt::format("{}: the checksum of {} bytes differs, they were damaged", format.name, bytes.size()));
  if (covered[0] != format.kind)
    return malformed(
        format, fmt::format("found kind {}, expected {}", static_cast<int>(covered[0]), static_cast<int>(format.kind)));
  const auto version = static_cast<std::uint8_t>(covered[1]);
  if (version != format.version)
    return absl::UnimplementedError(
        fmt::format("{}: found format version {}, this program reads {}; run the version "
                    "that wrote it, or a later one",
                    format.name, version, format.version));
  return covered.substr(kHeaderBytes);
}

std::uint8_t version_of(std::string_view bytes) {
  return bytes.size() < kHeaderBytes ? 0 : static_cast<std::uint8_t>(bytes[1]);
}

absl::Status malformed(const Format& format, const std::string& what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", format.name, what));
}

}  // namespace orla::codec
