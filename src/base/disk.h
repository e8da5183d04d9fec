// The seam to a disk on which bytes are kept for good: append-only files in one flat folder. What a node has to find
// again after a crash goes through a Disk, so that a simulated one can tear, lose and flip what was written.
//
// A name is a plain file name without a slash. Errors name the file and what was tried; a full disk is
// ResourceExhausted. Not thread-safe: one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace orla::base {

// A file that grows at its end.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  // After an error the file may hold any part of `bytes`: cut it back (Disk::append with `keep`) before going on.
  virtual absl::Status append(std::string_view bytes) = 0;
  // What was appended survives power loss. After an error nothing is known of what was appended since the last one.
  virtual absl::Status sync() = 0;
  virtual std::uint64_t size() const = 0;
};

class Disk {
 public:
  struct Entry {
    std::string name;
    std::uint64_t bytes = 0;
  };
  virtual ~Disk() = default;
  // Files of the folder, sorted by name.
  virtual absl::StatusOr<std::vector<Entry>> list() const = 0;
  // Up to `bytes` from `offset` on; shorter at the end of the file. NotFound when there is no such file;
  // DataLoss when the medium does not give the bytes.
  virtual absl::StatusOr<std::string> read(const std::string& name, std::uint64_t offset, std::size_t bytes) const = 0;
  // Opens the file, new when there is none, cut to its first `keep` bytes. A new one survives power loss after
  // sync_names().
  virtual absl::StatusOr<std::unique_ptr<AppendFile>> append(const std::string& name, std::uint64_t keep) = 0;
  // Fine when there is none.
  virtual absl::Status remove(const std::string& name) = 0;
  // Files made and removed survive power loss.
  virtual absl::Status sync_names() = 0;
  // Another one after every start of the machine: what was not synced before may be gone. Empty: cannot be told.
  virtual std::string boot() const = 0;
  // Where it is, for messages.
  virtual std::string where() const = 0;
};

}  // namespace orla::base
