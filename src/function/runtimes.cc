#include "function/runtimes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>
#include <system_error>
#include <utility>

#include "base/absl_view.h"
#include "base/environment.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/folder_entries.h"
#include "function/native_runtime.h"
#include "function/process_runtime.h"
#include "function/wasm_runtime.h"

namespace orla::function {

namespace {

// A row makes one runtime.
using MakeRuntime = std::unique_ptr<Runtime> (*)(const RuntimeSettings& settings, const base::Clock& clock);
constexpr MakeRuntime kRuntimes[] = {
    [](const RuntimeSettings& settings, const base::Clock& clock) {
      return make_wasm_runtime(settings.wasmtime, settings.state / "modules", clock);
    },
    [](const RuntimeSettings&, const base::Clock& clock) -> std::unique_ptr<Runtime> {
      return std::make_unique<ProcessRuntime>(clock, base::SystemEnvironment());
    },
    [](const RuntimeSettings& settings, const base::Clock& clock) -> std::unique_ptr<Runtime> {
      return std::make_unique<NativeRuntime>(clock, settings.matrices);
    },
};

constexpr std::string_view kNativePrefix = "native/";

bool is_wasm(const std::filesystem::path& path) {
  static constexpr std::string_view kMagic("\0asm", 4);
  // A few bytes of what may be a large file: one that is larger says so with OUT_OF_RANGE only after they are read.
  std::FILE* file = std::fopen(path.c_str(), "rbe");  // tidy: allow files: base reads whole files
  if (file == nullptr) return false;
  char first[4] = {};
  const std::size_t n = std::fread(first, 1, sizeof first, file);
  std::fclose(file);
  return std::string_view(first, n) == kMagic;
}

// "docker.io/org/name", "name:tag", "localhost:5000/name".
bool is_registry_path(std::string_view image) {
  const std::string_view host = image.substr(0, image.find('/'));
  const bool has_host = host.size() < image.size() && host.find_first_of(".:") != std::string_view::npos;
  return has_host || image.find(':') != std::string_view::npos || image.find('@') != std::string_view::npos;
}

absl::Status bad(std::string_view image, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("image \"{}\": {}", image, what));
}

absl::StatusOr<Image> image_in_folder(const std::filesystem::path& path, std::string_view image,
                                      std::string_view env_process) {
  if (!env_process.empty()) return Image{"process", path};
  const absl::StatusOr<std::vector<std::filesystem::path>> entries = base::folder_entries(path);
  if (!entries.ok()) return bad(image, base::message(entries.status()));
  std::vector<std::filesystem::path> modules;
  for (const std::filesystem::path& entry : *entries) {
    if (entry.extension() == ".wasm") modules.push_back(entry);
  }
  if (modules.size() != 1) {
    return bad(image, fmt::format("a folder with {} .wasm files and no envProcess; expected one .wasm file, or the "
                                  "command of a process in envProcess",
                                  modules.size()));
  }
  if (!is_wasm(modules[0])) {
    return bad(image, fmt::format("\"{}\" is no WebAssembly module: it does not begin with \\0asm",
                                  modules[0].filename().native()));
  }
  return Image{"wasm", modules[0]};
}

}  // namespace

std::vector<std::unique_ptr<Runtime>> make_runtimes(const RuntimeSettings& settings, const base::Clock& clock) {
  std::vector<std::unique_ptr<Runtime>> runtimes;
  for (const MakeRuntime make : kRuntimes) runtimes.push_back(make(settings, clock));
  return runtimes;
}

absl::StatusOr<Image> find_image(const std::filesystem::path& images, std::string_view image,
                                 std::string_view env_process) {
  if (image.empty()) return bad(image, "is empty; expected a file or folder under the node's images, or native/NAME");
  if (image.find('\0') != std::string_view::npos) return bad(image, "holds a NUL");
  if (image.starts_with(kNativePrefix)) return Image{"native", std::string(image.substr(kNativePrefix.size()))};
  if (images.empty()) {
    return absl::FailedPreconditionError(fmt::format(
        "image \"{}\": this node has no folder of images (setting `images`), so it runs native/NAME only", image));
  }
  std::error_code error;
  const std::filesystem::path root = std::filesystem::weakly_canonical(images, error);
  if (error) return bad(image, fmt::format("the folder of images \"{}\": {}", images.native(), error.message()));
  const std::filesystem::path path = std::filesystem::weakly_canonical(root / image, error);
  if (error) return bad(image, error.message());
  const std::filesystem::path inside = path.lexically_relative(root);
  if (inside.empty() || *inside.begin() == ".." || inside == ".") {
    return absl::FailedPreconditionError(
        fmt::format("image \"{}\" lies outside of the node's images \"{}\"", image, images.native()));
  }
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) {
    if (is_registry_path(image)) {
      return absl::FailedPreconditionError(fmt::format(
          "image \"{}\" is a registry's path: this node runs no containers; expected a file or folder under its images "
          "or native/NAME",
          image));
    }
    return bad(image, fmt::format("there is no such file or folder in \"{}\"", images.native()));
  }
  if (S_ISDIR(about.st_mode)) return image_in_folder(path, image, env_process);
  if (!S_ISREG(about.st_mode)) return bad(image, "is neither a file nor a folder");
  if (is_wasm(path)) return Image{"wasm", path};
  if (::access(path.c_str(), X_OK) == 0) return Image{"process", path};
  return bad(image, "is neither WebAssembly (it does not begin with \\0asm) nor executable (chmod +x)");
}

}  // namespace orla::function
