// The table of runtimes.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "function/runtime.h"

namespace orla::function {

class MatrixCodec;

struct RuntimeSettings {
  std::filesystem::path state;            // for what runtimes keep: compiled modules
  std::filesystem::path wasmtime;         // its library; empty: where the build put it
  const MatrixCodec* matrices = nullptr;  // of native functions; outlives the runtimes; null: raw matrices only
};

// One of each, in the order of the table. Nothing heavy is loaded before a module of it is.
std::vector<std::unique_ptr<Runtime>> make_runtimes(const RuntimeSettings& settings, const base::Clock& clock);

// Where an image lies and which runtime takes it.
struct Image {
  std::string_view runtime;  // its name()
  std::filesystem::path path;
};
// `image` of a spec: "native/NAME"; a path under `images`: a file (WebAssembly by its first bytes, else an executable)
// or a directory (with env_process: a process that runs in it, else its one *.wasm). INVALID_ARGUMENT: none of these,
// what was found; FAILED_PRECONDITION: a registry's path, which needs containers; a path that leaves `images`.
absl::StatusOr<Image> find_image(const std::filesystem::path& images, std::string_view image,
                                 std::string_view env_process);

}  // namespace orla::function
