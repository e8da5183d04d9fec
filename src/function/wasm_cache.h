// Compiled WebAssembly modules on disk.
//
// One file each, FOLDER/<SHA-256 of the module>-<engine>.cwasm: what wasmtime serialized, then a trailer of 80 bytes,
// integers little-endian:
//   8  "ORLACWA1"
//   8  number of bytes before the trailer
//  32  SHA-256 of the module that was compiled
//   8  hash64 of the engine's name: version and configuration
//  16  digest of the bytes before the trailer and the 56 bytes above, high half first
//   8  the length of the whole file
// Running such bytes is running native code, so the folder belongs to this user alone (mode 0700), and a file that
// belongs to another, that others may write, or that is not exactly as it was written is not used.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/sha256.h"

namespace orla::function {

inline constexpr std::size_t kCompiledTrailerBytes = 80;
inline constexpr std::size_t kMaxCompiledBytes = 1 << 30;

// The bytes with their trailer.
std::string seal_compiled(std::string_view compiled, const base::Sha256& module, std::string_view engine);
// OK: `file` is one of that module and engine, whole. DATA_LOSS says what is wrong.
absl::Status check_compiled(std::string_view file, const base::Sha256& module, std::string_view engine);

// Thread-safe: files are replaced whole.
class WasmCache {
 public:
  // Makes the folder, or takes it when nobody else may write there. `engine`: version and configuration.
  static absl::StatusOr<WasmCache> open(std::filesystem::path folder, std::string engine);

  std::filesystem::path path_of(const base::Sha256& module) const;
  // The file of the module when it is there, whole and only this user's. NOT_FOUND; DATA_LOSS, PERMISSION_DENIED say
  // why it is not used.
  absl::StatusOr<std::filesystem::path> find(const base::Sha256& module) const;
  absl::Status keep(const base::Sha256& module, std::string_view compiled) const;

 private:
  WasmCache(std::filesystem::path folder, std::string engine);
  std::filesystem::path folder_;
  std::string engine_;
  std::string suffix_;
};

}  // namespace orla::function
