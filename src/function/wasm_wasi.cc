// WASI preview 1 for functions: standard input is the request's body, standard output the response (a handler's goes to
// the log), standard error the log, the secrets are files that can be read, and there is nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "function/wasm_imports.h"
#include "function/wasm_sandbox.h"

namespace orla::function {

namespace {

// WASI's errno values that are used.
constexpr std::int32_t kSuccess = 0;
constexpr std::int32_t kBadf = 8;
constexpr std::int32_t kFault = 21;
constexpr std::int32_t kInval = 28;
constexpr std::int32_t kIo = 29;
constexpr std::int32_t kIsdir = 31;
constexpr std::int32_t kMfile = 33;
constexpr std::int32_t kNoent = 44;
constexpr std::int32_t kNosys = 52;
constexpr std::int32_t kRofs = 69;
constexpr std::int32_t kSpipe = 70;

constexpr std::uint32_t kMaxPieces = 1024;  // of one read or write
constexpr std::size_t kMostJoined = 64 * 1024;
constexpr std::uint32_t kMaxPolled = 1024;
constexpr std::uint32_t kSecretsFd = 3;
constexpr std::size_t kMaxOpenSecrets = 64;
constexpr std::size_t kMaxSecretBytes = 1 << 20;

constexpr std::uint8_t kUnknownType = 0;
constexpr std::uint8_t kDirectory = 3;
constexpr std::uint8_t kRegularFile = 4;

struct Arguments {
  Sandbox& sandbox;
  const wasmtime_val_raw* values;

  WasmCall& call() const { return *sandbox.call(); }
  std::uint32_t u32(std::size_t i) const { return static_cast<std::uint32_t>(values[i].i32); }
  std::uint64_t u64(std::size_t i) const { return static_cast<std::uint64_t>(values[i].i64); }
  // Where argument i points to, with `size` bytes inside of the memory; or null.
  char* at(std::size_t i, std::uint64_t size) const { return sandbox.memory(u32(i), size); }
};

bool has_secrets(const Arguments& a) { return !a.sandbox.facts().spec.secrets.empty(); }

bool is_standard(const Arguments& a, std::uint32_t fd) { return fd <= 2 && !a.sandbox.closed[fd]; }

OpenSecret* secret_of(const Arguments& a, std::uint32_t fd) {
  const auto found = a.sandbox.open_secrets.find(fd);
  return found == a.sandbox.open_secrets.end() ? nullptr : &found->second;
}

// --- Arguments and environment --------------------------------------------------------------------------------------

std::int32_t sizes_get(const Arguments& a, const std::vector<std::string>& strings) {
  char* number = a.at(0, 4);
  char* bytes = a.at(1, 4);
  if (number == nullptr || bytes == nullptr) return kFault;
  std::size_t all = 0;
  for (const std::string& text : strings) all += text.size() + 1;
  put(number, static_cast<std::uint32_t>(strings.size()));
  put(bytes, static_cast<std::uint32_t>(all));
  return kSuccess;
}

std::int32_t strings_get(const Arguments& a, const std::vector<std::string>& strings) {
  std::uint32_t to = a.u32(1);
  char* pointers = a.at(0, 4 * static_cast<std::uint64_t>(strings.size()));
  if (pointers == nullptr) return kFault;
  for (const std::string& text : strings) {
    char* place = a.sandbox.memory(to, text.size() + 1);
    if (place == nullptr) return kFault;
    std::memcpy(place, text.c_str(), text.size() + 1);
    put(pointers, to);
    pointers += 4;
    to += static_cast<std::uint32_t>(text.size() + 1);
  }
  return kSuccess;
}

std::int32_t args_sizes_get(const Arguments& a) { return sizes_get(a, a.sandbox.facts().arguments); }
std::int32_t args_get(const Arguments& a) { return strings_get(a, a.sandbox.facts().arguments); }
std::int32_t environ_sizes_get(const Arguments& a) { return sizes_get(a, a.call().environment()); }
std::int32_t environ_get(const Arguments& a) { return strings_get(a, a.call().environment()); }

// --- Time and chance ------------------------------------------------------------------------------------------------

constexpr std::uint32_t kRealtime = 0;
constexpr std::uint32_t kClocks = 4;  // realtime, monotonic, and the times of the process and the thread

std::int32_t clock_res_get(const Arguments& a) {
  char* to = a.at(1, 8);
  if (to == nullptr) return kFault;
  if (a.u32(0) >= kClocks) return kInval;
  put(to, std::uint64_t{1});
  return kSuccess;
}

std::uint64_t clock_now(const Arguments& a, std::uint32_t id) {
  const base::Clock& clock = a.sandbox.facts().clock;
  if (id == kRealtime) return static_cast<std::uint64_t>(clock.wall_now().time_since_epoch().count());
  const base::SteadyTime now = clock.steady_now();
  // The process is the call.
  return static_cast<std::uint64_t>(id == 1 ? now.time_since_epoch().count() : (now - a.call().started()).count());
}

std::int32_t clock_time_get(const Arguments& a) {
  char* to = a.at(2, 8);
  if (to == nullptr) return kFault;
  if (a.u32(0) >= kClocks) return kInval;
  put(to, clock_now(a, a.u32(0)));
  return kSuccess;
}

std::int32_t random_get(const Arguments& a) {
  const std::uint32_t size = a.u32(1);
  char* to = a.at(0, size);
  if (to == nullptr) return kFault;
  base::SystemRandom random;
  for (std::uint32_t done = 0; done < size; done += 8) {
    const std::uint64_t bits = random.next();
    std::memcpy(to + done, &bits, std::min<std::uint32_t>(8, size - done));
    if (done % (1 << 20) == 0 && a.call().must_end()) return kSuccess;
  }
  return kSuccess;
}

std::int32_t sched_yield(const Arguments& a) {
  a.call().must_end();
  return kSuccess;
}

// Subscriptions have 48 bytes: userdata u64, tag u8 (0 clock, 1 read, 2 write), at 16: clock u32, at 24: time u64,
// at 40: flags u16 (1: absolute). Events have 32: userdata u64, errno u16, tag u8, at 16: bytes u64.
std::int32_t poll_oneoff(const Arguments& a) {
  const std::uint32_t number = a.u32(2);
  if (number == 0 || number > kMaxPolled) return kInval;
  const char* in = a.at(0, std::uint64_t{48} * number);
  char* out = a.at(1, std::uint64_t{32} * number);
  char* count = a.at(3, 4);
  if (in == nullptr || out == nullptr || count == nullptr) return kFault;
  std::uint32_t events = 0;
  const auto tell = [&](const char* subscription, std::int32_t error, std::uint8_t tag) {
    char* event = out + std::size_t{32} * events++;
    const auto userdata = load<std::uint64_t>(subscription);
    std::memset(event, 0, 32);
    put(event, userdata);
    put(event + 8, static_cast<std::uint16_t>(error));
    event[10] = static_cast<char>(tag);
  };
  // Input and a response can always be waited for where they are used; so they are ready. `in` and `out` may overlap.
  const std::string subscriptions(in, std::size_t{48} * number);
  const base::SteadyTime now = a.sandbox.facts().clock.steady_now();
  base::SteadyTime first = base::SteadyTime::max();
  std::vector<std::pair<base::SteadyTime, const char*>> clocks;
  for (std::uint32_t i = 0; i < number; ++i) {
    const char* subscription = subscriptions.data() + std::size_t{48} * i;
    const auto tag = static_cast<std::uint8_t>(subscription[8]);
    if (tag == 1 || tag == 2) {
      const auto fd = load<std::uint32_t>(subscription + 16);
      tell(subscription, is_standard(a, fd) || secret_of(a, fd) != nullptr ? kSuccess : kBadf, tag);
      continue;
    }
    const auto id = load<std::uint32_t>(subscription + 16);
    if (tag != 0 || id >= kClocks) {
      tell(subscription, kInval, tag);
      continue;
    }
    auto time = load<std::uint64_t>(subscription + 24);
    if ((load<std::uint16_t>(subscription + 40) & 1) != 0) {
      const std::uint64_t there = clock_now(a, id);
      time = time > there ? time - there : 0;
    }
    constexpr std::uint64_t kFar = 100ULL * 365 * 86400 * 1'000'000'000;
    const base::SteadyTime due = now + std::chrono::nanoseconds(std::min<std::uint64_t>(time, kFar));
    clocks.emplace_back(due, subscription);
    first = std::min(first, due);
  }
  if (events == 0) {
    if (!a.call().wait_until(first)) return kSuccess;  // the call ends
    for (const auto& [due, subscription] : clocks) {
      if (due <= first) tell(subscription, kSuccess, 0);
    }
  }
  put(count, events);
  return kSuccess;
}

std::int32_t proc_exit(const Arguments& a) {
  a.call().exit_code = a.values[0].i32;
  return kSuccess;
}

// --- Files ----------------------------------------------------------------------------------------------------------

// The pieces of a read or write: arguments 1 and 2. `use` gets each; it stops at false.
template <typename Use>
std::int32_t for_pieces(const Arguments& a, Use use) {
  const std::uint32_t number = a.u32(2);
  if (number > kMaxPieces) return kInval;
  const char* list = a.at(1, std::uint64_t{8} * number);
  if (list == nullptr) return kFault;
  for (std::uint32_t i = 0; i < number; ++i) {
    const auto at = load<std::uint32_t>(list + std::size_t{8} * i);
    const auto size = load<std::uint32_t>(list + std::size_t{8} * i + 4);
    char* piece = a.sandbox.memory(at, size);
    if (piece == nullptr) return kFault;
    if (!use(piece, size)) return kSuccess;
  }
  return kSuccess;
}

std::int32_t read_secret(const Arguments& a, const OpenSecret& secret, std::size_t at, std::uint32_t& all) {
  return for_pieces(a, [&](char* to, std::uint32_t room) {
    const std::size_t n = secret.bytes.copy(to, room, std::min(at, secret.bytes.size()));
    at += n;
    all += static_cast<std::uint32_t>(n);
    return n == room;
  });
}

std::int32_t fd_read(const Arguments& a) {
  const std::uint32_t fd = a.u32(0);
  char* count = a.at(3, 4);
  if (count == nullptr) return kFault;
  std::uint32_t all = 0;
  std::int32_t error = kBadf;
  if (fd == 0 && is_standard(a, fd)) {
    error = for_pieces(a, [&](char* to, std::uint32_t room) {
      const absl::StatusOr<std::size_t> n = a.call().read_body(to, room);
      if (!n.ok()) return false;  // the call ends
      all += static_cast<std::uint32_t>(*n);
      return *n == room;
    });
  } else if (OpenSecret* secret = secret_of(a, fd); secret != nullptr) {
    error = read_secret(a, *secret, secret->at, all);
    secret->at += all;
  }
  put(count, all);
  return error;
}

std::int32_t fd_pread(const Arguments& a) {
  const OpenSecret* secret = secret_of(a, a.u32(0));
  char* count = a.at(4, 4);
  if (count == nullptr) return kFault;
  if (secret == nullptr) return a.u32(0) <= 2 ? kSpipe : kBadf;
  std::uint32_t all = 0;
  const std::int32_t error =
      read_secret(a, *secret, static_cast<std::size_t>(std::min<std::uint64_t>(a.u64(3), secret->bytes.size())), all);
  put(count, all);
  return error;
}

std::int32_t fd_write(const Arguments& a) {
  const std::uint32_t fd = a.u32(0);
  char* count = a.at(3, 4);
  if (count == nullptr) return kFault;
  if (fd == 0 || !is_standard(a, fd)) return kBadf;
  const bool answers = fd == 1 && a.sandbox.facts().style == WasmStyle::kCommand;
  const auto use = [&](std::string_view piece) {
    if (answers) return a.call().write_output(piece);
    a.call().log().write(piece);
    return true;
  };
  // A C library writes its buffer and what comes behind it as pieces; they are one write to a client that waits.
  std::string joined;
  std::uint32_t all = 0;
  const std::int32_t error = for_pieces(a, [&](const char* from, std::uint32_t size) {
    all += size;
    if (a.u32(2) == 1) return use(std::string_view(from, size));
    if (joined.size() + size > kMostJoined) {
      if (!use(joined)) return false;
      joined.clear();
    }
    if (size > kMostJoined) return use(std::string_view(from, size));
    joined.append(from, size);
    return true;
  });
  if (!joined.empty()) use(joined);
  put(count, all);
  return error;
}

std::int32_t fd_close(const Arguments& a) {
  const std::uint32_t fd = a.u32(0);
  if (is_standard(a, fd)) {
    a.sandbox.closed[fd] = true;
    return kSuccess;
  }
  return a.sandbox.open_secrets.erase(fd) > 0 ? kSuccess : kBadf;
}

std::int32_t fd_seek(const Arguments& a) {
  OpenSecret* secret = secret_of(a, a.u32(0));
  char* to = a.at(3, 8);
  if (to == nullptr) return kFault;
  if (secret == nullptr) return is_standard(a, a.u32(0)) ? kSpipe : kBadf;
  const auto offset = static_cast<std::int64_t>(a.u64(1));
  const auto size = static_cast<std::int64_t>(secret->bytes.size());
  const std::uint32_t whence = a.u32(2);  // 0: start, 1: where it is, 2: end
  if (whence > 2) return kInval;
  const std::int64_t from = whence == 0 ? 0 : whence == 1 ? static_cast<std::int64_t>(secret->at) : size;
  if (offset < -from || offset > static_cast<std::int64_t>(kMaxSecretBytes)) return kInval;
  secret->at = static_cast<std::size_t>(from + offset);
  put(to, static_cast<std::uint64_t>(secret->at));
  return kSuccess;
}

std::int32_t fd_tell(const Arguments& a) {
  const OpenSecret* secret = secret_of(a, a.u32(0));
  char* to = a.at(1, 8);
  if (to == nullptr) return kFault;
  if (secret == nullptr) return is_standard(a, a.u32(0)) ? kSpipe : kBadf;
  put(to, static_cast<std::uint64_t>(secret->at));
  return kSuccess;
}

// The type of a descriptor; nothing when it is none.
std::optional<std::uint8_t> type_of(const Arguments& a, std::uint32_t fd) {
  if (is_standard(a, fd)) return kUnknownType;
  if (fd == kSecretsFd && has_secrets(a)) return kDirectory;
  if (secret_of(a, fd) != nullptr) return kRegularFile;
  return std::nullopt;
}

std::int32_t fd_fdstat_get(const Arguments& a) {
  const std::optional<std::uint8_t> type = type_of(a, a.u32(0));
  char* to = a.at(1, 24);
  if (to == nullptr) return kFault;
  if (!type) return kBadf;
  std::memset(to, 0, 24);
  to[0] = static_cast<char>(*type);
  put(to + 8, ~std::uint64_t{0});   // what it may do
  put(to + 16, ~std::uint64_t{0});  // and what is opened under it
  return kSuccess;
}

std::int32_t put_filestat(char* to, std::uint8_t type, std::uint64_t size) {
  if (to == nullptr) return kFault;
  std::memset(to, 0, 64);
  to[16] = static_cast<char>(type);
  put(to + 24, std::uint64_t{1});
  put(to + 32, size);
  return kSuccess;
}

std::int32_t fd_filestat_get(const Arguments& a) {
  const std::optional<std::uint8_t> type = type_of(a, a.u32(0));
  if (!type) return kBadf;
  const OpenSecret* secret = secret_of(a, a.u32(0));
  return put_filestat(a.at(1, 64), *type, secret == nullptr ? 0 : secret->bytes.size());
}

std::int32_t fd_prestat_get(const Arguments& a) {
  if (a.u32(0) != kSecretsFd || !has_secrets(a)) return kBadf;
  char* to = a.at(1, 8);
  if (to == nullptr) return kFault;
  put(to, std::uint32_t{0});  // a directory
  put(to + 4, static_cast<std::uint32_t>(kSecretsFolder.size()));
  return kSuccess;
}

std::int32_t fd_prestat_dir_name(const Arguments& a) {
  if (a.u32(0) != kSecretsFd || !has_secrets(a)) return kBadf;
  if (a.u32(2) < kSecretsFolder.size()) return kInval;
  char* to = a.at(1, kSecretsFolder.size());
  if (to == nullptr) return kFault;
  std::memcpy(to, kSecretsFolder.data(), kSecretsFolder.size());
  return kSuccess;
}

// The secret that argument i names; an error when there is none.
std::int32_t open_secret(const Arguments& a, std::size_t i, OpenSecret& opened) {
  const char* name = a.at(i, a.u32(i + 1));
  if (name == nullptr) return kFault;
  std::string_view path(name, a.u32(i + 1));
  if (path.starts_with("./")) path.remove_prefix(2);
  if (path == "." || path.empty()) return kIsdir;
  for (const auto& [secret, file] : a.sandbox.facts().spec.secrets) {
    if (secret != path) continue;
    absl::StatusOr<std::string> bytes = base::read_file(file, kMaxSecretBytes);
    if (!bytes.ok()) {
      a.call().log().write(fmt::format("secret {} cannot be read: {}\n", secret, bytes.status().ToString()));
      return kIo;
    }
    opened.bytes = *std::move(bytes);
    return kSuccess;
  }
  return kNoent;
}

std::int32_t path_open(const Arguments& a) {
  if (a.u32(0) != kSecretsFd || !has_secrets(a)) return kBadf;
  char* to = a.at(8, 4);
  if (to == nullptr) return kFault;
  constexpr std::uint32_t kCreates = 1 | 8;  // creat, trunc
  if ((a.u32(4) & kCreates) != 0) return kRofs;
  if (a.sandbox.open_secrets.size() >= kMaxOpenSecrets) return kMfile;
  OpenSecret opened;
  if (const std::int32_t error = open_secret(a, 2, opened); error != kSuccess) return error;
  std::uint32_t fd = kSecretsFd + 1;
  while (a.sandbox.open_secrets.contains(fd)) ++fd;
  a.sandbox.open_secrets.emplace(fd, std::move(opened));
  put(to, fd);
  return kSuccess;
}

std::int32_t path_filestat_get(const Arguments& a) {
  if (a.u32(0) != kSecretsFd || !has_secrets(a)) return kBadf;
  OpenSecret opened;
  const std::int32_t error = open_secret(a, 2, opened);
  if (error == kIsdir) return put_filestat(a.at(4, 64), kDirectory, 0);
  if (error != kSuccess) return error;
  return put_filestat(a.at(4, 64), kRegularFile, opened.bytes.size());
}

std::int32_t fd_fdstat_set_flags(const Arguments& a) { return type_of(a, a.u32(0)) ? kSuccess : kBadf; }

std::int32_t nosys(const Arguments&) { return kNosys; }

template <std::int32_t (*Function)(const Arguments&)>
wasm_trap_t* wasi(void* environment, wasmtime_caller* caller, wasmtime_val_raw* values, std::size_t) {
  const auto& api = *static_cast<const WasmtimeApi*>(environment);
  Sandbox& sandbox = sandbox_of(api, caller);
  const std::int32_t result = Function({sandbox, values});
  if (wasm_trap_t* ended = trap_when_ended(api, sandbox); ended != nullptr) return ended;
  if (values != nullptr) values[0].i32 = result;
  return nullptr;
}

}  // namespace

absl::Status define_wasi(const WasmtimeApi& api, wasmtime_linker* linker) {
  return define_host_functions(api, linker, "wasi_snapshot_preview1",
                               {{"args_get", "ii:i", wasi<args_get>},
                                {"args_sizes_get", "ii:i", wasi<args_sizes_get>},
                                {"environ_get", "ii:i", wasi<environ_get>},
                                {"environ_sizes_get", "ii:i", wasi<environ_sizes_get>},
                                {"clock_res_get", "ii:i", wasi<clock_res_get>},
                                {"clock_time_get", "iIi:i", wasi<clock_time_get>},
                                {"random_get", "ii:i", wasi<random_get>},
                                {"poll_oneoff", "iiii:i", wasi<poll_oneoff>},
                                {"sched_yield", ":i", wasi<sched_yield>},
                                {"proc_exit", "i", wasi<proc_exit>},
                                {"fd_read", "iiii:i", wasi<fd_read>},
                                {"fd_pread", "iiiIi:i", wasi<fd_pread>},
                                {"fd_write", "iiii:i", wasi<fd_write>},
                                {"fd_close", "i:i", wasi<fd_close>},
                                {"fd_seek", "iIii:i", wasi<fd_seek>},
                                {"fd_tell", "ii:i", wasi<fd_tell>},
                                {"fd_fdstat_get", "ii:i", wasi<fd_fdstat_get>},
                                {"fd_fdstat_set_flags", "ii:i", wasi<fd_fdstat_set_flags>},
                                {"fd_filestat_get", "ii:i", wasi<fd_filestat_get>},
                                {"fd_prestat_get", "ii:i", wasi<fd_prestat_get>},
                                {"fd_prestat_dir_name", "iii:i", wasi<fd_prestat_dir_name>},
                                {"path_open", "iiiiiIIii:i", wasi<path_open>},
                                {"path_filestat_get", "iiiii:i", wasi<path_filestat_get>},
                                // A function has none of these.
                                {"fd_advise", "iIIi:i", wasi<nosys>},
                                {"fd_allocate", "iII:i", wasi<nosys>},
                                {"fd_datasync", "i:i", wasi<nosys>},
                                {"fd_fdstat_set_rights", "iII:i", wasi<nosys>},
                                {"fd_filestat_set_size", "iI:i", wasi<nosys>},
                                {"fd_filestat_set_times", "iIIi:i", wasi<nosys>},
                                {"fd_pwrite", "iiiIi:i", wasi<nosys>},
                                {"fd_readdir", "iiiIi:i", wasi<nosys>},
                                {"fd_renumber", "ii:i", wasi<nosys>},
                                {"fd_sync", "i:i", wasi<nosys>},
                                {"path_create_directory", "iii:i", wasi<nosys>},
                                {"path_filestat_set_times", "iiiiIIi:i", wasi<nosys>},
                                {"path_link", "iiiiiii:i", wasi<nosys>},
                                {"path_readlink", "iiiiii:i", wasi<nosys>},
                                {"path_remove_directory", "iii:i", wasi<nosys>},
                                {"path_rename", "iiiiii:i", wasi<nosys>},
                                {"path_symlink", "iiiii:i", wasi<nosys>},
                                {"path_unlink_file", "iii:i", wasi<nosys>},
                                {"proc_raise", "i:i", wasi<nosys>},
                                {"sock_accept", "iii:i", wasi<nosys>},
                                {"sock_recv", "iiiiii:i", wasi<nosys>},
                                {"sock_send", "iiiii:i", wasi<nosys>},
                                {"sock_shutdown", "ii:i", wasi<nosys>}});
}

}  // namespace orla::function
