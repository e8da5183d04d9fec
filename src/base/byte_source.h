// Reads bytes once, front to back: a plain file, a gzip file (of one or many members) or a zstd file (of one or many
// frames), told apart by their first bytes.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace orla::base {

// Not thread-safe: one owner.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills the front of `out` (not empty) and says how much; 0 is the end. What is wrong with a damaged or truncated
  // stream is reported after all good bytes before the damage, and then at every further call.
  virtual absl::StatusOr<std::size_t> read(std::span<char> out) = 0;
  // Leaves out the next `count` bytes: a plain file seeks, others read on. OutOfRange when fewer are left.
  virtual absl::Status skip(std::uint64_t count);
  // The part of the underlying file that has been read, 0..1; negative when its size is unknown.
  virtual double progress() const = 0;
};

// The decompressed content of the file. A file named .gz or .zst whose content is neither is an error; any other file
// that does not begin as gzip or zstd is taken as it is.
absl::StatusOr<std::unique_ptr<ByteSource>> open_bytes(const std::string& path);

// The same over another source; `name` is what messages call it.
absl::StatusOr<std::unique_ptr<ByteSource>> decompress(std::unique_ptr<ByteSource> raw, const std::string& name);

// The bytes themselves, at most `piece` (> 0) of them at a read.
std::unique_ptr<ByteSource> bytes_in_memory(std::string bytes,
                                            std::size_t piece = std::numeric_limits<std::size_t>::max());

}  // namespace orla::base
