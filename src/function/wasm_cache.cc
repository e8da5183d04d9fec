#include "function/wasm_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/files.h"
#include "base/hash.h"

namespace orla::function {

namespace {

constexpr std::string_view kMagic = "ORLACWA1";

void put_u64(std::string& to, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) to += static_cast<char>(value >> shift);
}

// All of the trailer but its digest and length.
std::string trailer_head(std::uint64_t bytes, const base::Sha256& module, std::string_view engine) {
  std::string head(kMagic);
  put_u64(head, bytes);
  head.append(reinterpret_cast<const char*>(module.data()), module.size());
  put_u64(head, base::hash64(engine));
  return head;
}

std::string trailer(std::string_view compiled, const base::Sha256& module, std::string_view engine) {
  std::string all = trailer_head(compiled.size(), module, engine);
  const base::Digest digest = base::chain(base::digest(compiled), all);
  put_u64(all, digest.high);
  put_u64(all, digest.low);
  put_u64(all, compiled.size() + kCompiledTrailerBytes);
  return all;
}

// Whether only this user writes there.
absl::Status check_owner(const std::filesystem::path& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return base::errno_status(errno, fmt::format("\"{}\"", path.native()));
  if (about.st_uid == ::geteuid() && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(fmt::format(
      "\"{}\" holds compiled code and is not this user's alone (owner {}, mode {:o}); expected owner {} and no writing "
      "by others: remove it, or chown and chmod go-w",
      path.native(), about.st_uid, about.st_mode & 07777U, ::geteuid()));
}

}  // namespace

std::string seal_compiled(std::string_view compiled, const base::Sha256& module, std::string_view engine) {
  std::string file;
  file.reserve(compiled.size() + kCompiledTrailerBytes);
  file += compiled;
  return file += trailer(compiled, module, engine);
}

absl::Status check_compiled(std::string_view file, const base::Sha256& module, std::string_view engine) {
  if (file.size() < kCompiledTrailerBytes) {
    return absl::DataLossError(fmt::format("{} bytes are no compiled module", file.size()));
  }
  const std::string_view compiled = file.substr(0, file.size() - kCompiledTrailerBytes);
  if (file.substr(compiled.size()) == trailer(compiled, module, engine)) return absl::OkStatus();
  if (file.substr(compiled.size(), kMagic.size()) != kMagic) {
    return absl::DataLossError("its end is missing: it is cut or is another kind of file");
  }
  return absl::DataLossError("its checksum or its engine's version is another one");
}

WasmCache::WasmCache(std::filesystem::path folder, std::string engine)
    : folder_(std::move(folder)),
      engine_(std::move(engine)),
      suffix_(fmt::format("-{:016x}.cwasm", base::hash64(engine_))) {}

absl::StatusOr<WasmCache> WasmCache::open(std::filesystem::path folder, std::string engine) {
  if (absl::Status made = base::make_directories(folder); !made.ok()) return made;
  if (absl::Status owned = check_owner(folder); !owned.ok()) return owned;
  if (::chmod(folder.c_str(), S_IRWXU) != 0) {
    return base::errno_status(errno, fmt::format("cannot keep \"{}\" to this user", folder.native()));
  }
  return WasmCache(std::move(folder), std::move(engine));
}

std::filesystem::path WasmCache::path_of(const base::Sha256& module) const {
  return folder_ / (base::hex(module) + suffix_);
}

absl::StatusOr<std::filesystem::path> WasmCache::find(const base::Sha256& module) const {
  std::filesystem::path path = path_of(module);
  if (!base::exists(path)) return absl::NotFoundError(fmt::format("there is no \"{}\"", path.native()));
  if (absl::Status owned = check_owner(path); !owned.ok()) return owned;
  const absl::StatusOr<std::string> file = base::read_file(path, kMaxCompiledBytes);
  if (!file.ok()) return file.status();
  if (absl::Status whole = check_compiled(*file, module, engine_); !whole.ok()) {
    return absl::DataLossError(fmt::format("\"{}\": {}", path.native(), std::string(whole.message())));
  }
  return path;
}

absl::Status WasmCache::keep(const base::Sha256& module, std::string_view compiled) const {
  if (compiled.size() + kCompiledTrailerBytes > kMaxCompiledBytes) {
    return absl::OutOfRangeError(fmt::format("a compiled module of {} bytes is not kept", compiled.size()));
  }
  return base::write_file_atomically(path_of(module), seal_compiled(compiled, module, engine_));
}

}  // namespace orla::function
