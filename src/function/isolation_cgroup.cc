#include "function/isolation_cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "base/absl_view.h"
#include "base/files.h"

namespace orla::function {

namespace {

using std::filesystem::path;

constexpr std::string_view kPrefix = "orla-";
constexpr std::uint64_t kCpuPeriodUs = 100'000;
constexpr int kRemovalTries = 100;  // 10 ms apart

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(by);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool has(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

absl::Status put(const path& file, std::string_view text) {
  const base::FileDescriptor fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return base::errno_status(errno, fmt::format("cannot open \"{}\"", file.string()));
  if (::write(fd.get(), text.data(), text.size()) < 0) {
    return base::errno_status(errno, fmt::format("cannot write \"{}\" to \"{}\"", text, file.string()));
  }
  return absl::OkStatus();
}

std::string get(const path& file) { return base::read_file(file, 1 << 20).value_or(""); }

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// Of "name value" lines.
std::optional<std::uint64_t> field(const std::string& text, std::string_view name) {
  for (const std::string_view line : split(text, '\n')) {
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ') {
      return number(line.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

// Makes `controller` available to groups below `own`. A group of version 2 that has processes cannot have children with
// controllers, so this process, when it is alone there, moves to one of its own first.
bool enable(const path& own, std::string_view controller) {
  if (!has(split(get(own / "cgroup.controllers"), ' '), controller) &&
      get(own / "cgroup.controllers").find(controller) == std::string::npos) {
    return false;
  }
  if (get(own / "cgroup.subtree_control").find(controller) != std::string::npos) return true;
  const std::string wanted = fmt::format("+{}", controller);
  if (put(own / "cgroup.subtree_control", wanted).ok()) return true;
  if (get(own / "cgroup.procs") != fmt::format("{}\n", ::getpid())) return false;
  const path node = own / "orla.node";
  if (::mkdir(node.c_str(), 0755) != 0 && errno != EEXIST) return false;
  if (!put(node / "cgroup.procs", "0").ok()) return false;
  return put(own / "cgroup.subtree_control", wanted).ok();
}

}  // namespace

CgroupPlaces find_cgroups(std::string_view mounts, std::string_view own) {
  CgroupPlaces places;
  const auto own_path = [&](std::string_view controller) -> std::optional<std::string> {
    for (const std::string_view line : split(own, '\n')) {  // "4:memory:/a/b", "0::/a/b"
      const std::vector<std::string_view> parts = split(line, ':');
      if (parts.size() < 3) continue;
      if (controller.empty() ? parts[1].empty() && parts[0] == "0" : has(split(parts[1], ','), controller)) {
        return std::string(line.substr(parts[0].size() + parts[1].size() + 2));
      }
    }
    return std::nullopt;
  };
  const auto below = [](std::string_view mount_point, std::string_view mount_root, std::string_view group) {
    // A mount may show a part of the hierarchy only.
    if (mount_root != "/" && group.starts_with(mount_root)) group.remove_prefix(mount_root.size());
    while (group.starts_with('/')) group.remove_prefix(1);
    return path(mount_point) / path(group);
  };
  struct Wanted {
    std::string_view controller;
    std::optional<CgroupPlaces::Place>* place;
  };
  const Wanted wanted[] = {
      {"memory", &places.memory}, {"cpu", &places.cpu}, {"cpuacct", &places.cpuacct}, {"pids", &places.pids}};
  for (const std::string_view line : split(mounts, '\n')) {
    // id parent device root mount-point options ... - type source super-options
    const std::vector<std::string_view> words = split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 4) continue;
    const std::string_view type = dash[1];
    for (const Wanted& want : wanted) {
      if (want.place->has_value()) continue;
      if (type == "cgroup" && has(split(dash[3], ','), want.controller)) {
        const std::optional<std::string> group = own_path(want.controller);
        if (!group.has_value()) continue;
        const path place = below(words[4], words[3], *group);
        if (::access(place.c_str(), W_OK) == 0) *want.place = {CgroupPlaces::Version::kOne, place};
      }
      if (type == "cgroup2" && want.controller != "cpuacct") {
        const std::optional<std::string> group = own_path("");
        if (!group.has_value()) continue;
        const path place = below(words[4], words[3], *group);
        if (::access(place.c_str(), W_OK) == 0 && enable(place, want.controller)) {
          *want.place = {CgroupPlaces::Version::kTwo, place};
        }
      }
    }
  }
  return places;
}

void sweep_cgroups(const CgroupPlaces& places) {
  for (const auto* place : {&places.memory, &places.cpu, &places.cpuacct, &places.pids}) {
    if (!place->has_value()) continue;
    std::error_code error;
    for (std::filesystem::directory_iterator i((*place)->path, error), end; !error && i != end; i.increment(error)) {
      const std::string name = i->path().filename().string();  // orla-PID-NUMBER
      if (!name.starts_with(kPrefix)) continue;
      const std::optional<std::uint64_t> pid = number(std::string_view(name).substr(kPrefix.size()));
      if (pid.has_value() && ::kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH) ::rmdir(i->path().c_str());
    }
  }
}

absl::Status Cgroup::add(const CgroupPlaces::Place& place, const std::string& name) {
  const path group = place.path / name;
  if (std::any_of(groups_.begin(), groups_.end(), [&](const Group& g) { return g.path == group; })) {
    return absl::OkStatus();
  }
  if (::mkdir(group.c_str(), 0755) != 0 && errno != EEXIST) {
    return base::errno_status(errno, fmt::format("cannot make the cgroup \"{}\"", group.string()));
  }
  groups_.push_back(
      {place.version, group, base::FileDescriptor(::open((group / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC))});
  if (!groups_.back().procs.valid()) {
    return base::errno_status(errno, fmt::format("cannot open \"{}/cgroup.procs\"", group.string()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Cgroup>> Cgroup::create(const CgroupPlaces& places, const CgroupLimits& limits) {
  static std::atomic<std::uint64_t> number{0};
  const std::string name = fmt::format("{}{}-{}", kPrefix, ::getpid(), number.fetch_add(1) + 1);
  std::unique_ptr<Cgroup> cgroup(new Cgroup);
  const bool two = places.memory.has_value() && places.memory->version == CgroupPlaces::Version::kTwo;
  if (limits.memory_bytes.has_value() && places.memory.has_value()) {
    if (absl::Status made = cgroup->add(*places.memory, name); !made.ok()) return made;
    cgroup->memory_ = places.memory->path / name;
    const std::string bytes = fmt::format("{}", *limits.memory_bytes);
    if (absl::Status set = put(*cgroup->memory_ / (two ? "memory.max" : "memory.limit_in_bytes"), bytes); !set.ok()) {
      return set;
    }
    // Without swap, where that is counted.
    (void)put(*cgroup->memory_ / (two ? "memory.swap.max" : "memory.memsw.limit_in_bytes"), two ? "0" : bytes);
  }
  if (limits.cpu_cores.has_value() && places.cpu.has_value()) {
    if (absl::Status made = cgroup->add(*places.cpu, name); !made.ok()) return made;
    cgroup->cpu_ = places.cpu->path / name;
    const auto quota = std::max<std::uint64_t>(
        1'000, static_cast<std::uint64_t>(*limits.cpu_cores * static_cast<double>(kCpuPeriodUs)));
    if (places.cpu->version == CgroupPlaces::Version::kTwo) {
      if (absl::Status set = put(*cgroup->cpu_ / "cpu.max", fmt::format("{} {}", quota, kCpuPeriodUs)); !set.ok()) {
        return set;
      }
    } else {
      if (absl::Status set = put(*cgroup->cpu_ / "cpu.cfs_period_us", fmt::format("{}", kCpuPeriodUs)); !set.ok()) {
        return set;
      }
      if (absl::Status set = put(*cgroup->cpu_ / "cpu.cfs_quota_us", fmt::format("{}", quota)); !set.ok()) return set;
      if (places.cpuacct.has_value()) {
        if (absl::Status made = cgroup->add(*places.cpuacct, name); !made.ok()) return made;
        cgroup->cpuacct_ = places.cpuacct->path / name;
      }
    }
  }
  if (limits.processes.has_value() && places.pids.has_value()) {
    if (absl::Status made = cgroup->add(*places.pids, name); !made.ok()) return made;
    if (absl::Status set = put(places.pids->path / name / "pids.max", fmt::format("{}", *limits.processes));
        !set.ok()) {
      return set;
    }
  }
  return cgroup;
}

Cgroup::~Cgroup() {
  for (Group& group : groups_) {
    group.procs.reset();
    for (int tries = 0; ::rmdir(group.path.c_str()) != 0 && errno == EBUSY && tries < kRemovalTries; ++tries) {
      kill_all();
      ::poll(nullptr, 0, 10);
    }
  }
}

std::vector<int> Cgroup::procs() const {
  std::vector<int> all;
  for (const Group& group : groups_) all.push_back(group.procs.get());
  return all;
}

void Cgroup::kill_all() {
  for (const Group& group : groups_) {
    if (group.version == CgroupPlaces::Version::kTwo && put(group.path / "cgroup.kill", "1").ok()) continue;
    const std::string pids = get(group.path / "cgroup.procs");
    for (const std::string_view line : split(pids, '\n')) {
      if (const std::optional<std::uint64_t> pid = number(line); pid.has_value() && *pid > 1) {
        ::kill(static_cast<pid_t>(*pid), SIGKILL);
      }
    }
  }
}

std::uint64_t Cgroup::oom_kills() const {
  if (!memory_.has_value()) return 0;
  if (const auto two = field(get(*memory_ / "memory.events"), "oom_kill"); two.has_value()) return *two;
  return field(get(*memory_ / "memory.oom_control"), "oom_kill").value_or(0);
}

std::optional<std::uint64_t> Cgroup::memory_bytes() const {
  if (!memory_.has_value()) return std::nullopt;
  if (const auto two = number(get(*memory_ / "memory.current")); two.has_value()) return two;
  return number(get(*memory_ / "memory.usage_in_bytes"));
}

std::optional<double> Cgroup::cpu_seconds() const {
  if (cpuacct_.has_value()) {
    if (const auto ns = number(get(*cpuacct_ / "cpuacct.usage")); ns.has_value())
      return static_cast<double>(*ns) * 1e-9;
  }
  if (cpu_.has_value()) {
    if (const auto us = field(get(*cpu_ / "cpu.stat"), "usage_usec"); us.has_value()) {
      return static_cast<double>(*us) * 1e-6;
    }
  }
  return std::nullopt;
}

}  // namespace orla::function
