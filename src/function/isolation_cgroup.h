// Limits of memory, processor time and processes for a replica, by control groups: version 2, or the hierarchies of
// version 1 where the machine has those.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace orla::function {

// This process's own group in each hierarchy, where groups for functions can be made below it; empty: none there.
struct CgroupPlaces {
  enum class Version : std::uint8_t { kOne, kTwo };
  struct Place {
    Version version = Version::kTwo;
    std::filesystem::path path;
  };
  std::optional<Place> memory, cpu, cpuacct, pids;
};
// `mounts` and `own` are the texts of /proc/self/mountinfo and /proc/self/cgroup. Only what can be written is a place.
CgroupPlaces find_cgroups(std::string_view mounts, std::string_view own);
// Removes the empty groups that nodes which are gone left in these places.
void sweep_cgroups(const CgroupPlaces& places);

struct CgroupLimits {
  std::optional<std::uint64_t> memory_bytes;
  std::optional<double> cpu_cores;
  std::optional<std::uint64_t> processes;
};

// The groups of one replica. Their removal waits a little for processes that are ending.
class Cgroup {
 public:
  static absl::StatusOr<std::unique_ptr<Cgroup>> create(const CgroupPlaces& places, const CgroupLimits& limits);
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  std::vector<int> procs() const;  // of each group's cgroup.procs, open for writing
  std::uint64_t oom_kills() const;
  std::optional<std::uint64_t> memory_bytes() const;
  std::optional<double> cpu_seconds() const;
  void kill_all();

 private:
  struct Group {
    CgroupPlaces::Version version;
    std::filesystem::path path;
    base::FileDescriptor procs;
  };
  Cgroup() = default;
  absl::Status add(const CgroupPlaces::Place& place, const std::string& name);

  std::vector<Group> groups_;
  std::optional<std::filesystem::path> memory_, cpu_, cpuacct_;  // the group's path there
};

}  // namespace orla::function
