// How the storage of a simulated machine misbehaves: writes and reads that fail or take long, processes that die before
// or after one is durable. What goes wrong is set by faults; a healthy disk does nothing of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/faulty_disk.h"
#include "base/random.h"
#include "sim/fake_loop.h"
#include "sim/planted.h"

namespace orla::sim {

class FakeDisk {
 public:
  // `random` outlives the disk.
  explicit FakeDisk(base::Random& random) : random_(random) {}

  // Before a write, and after it is durable.
  absl::Status before_write(const char* what);
  void after_write();
  absl::Status before_read(const char* what);
  // The same for the files of an edge: the hook of their disk.
  absl::Status at(const base::FaultyDisk::Step& step);

  // The process dies in the `writes`-th write from now on.
  enum class Moment : std::uint8_t { kBefore, kWithin, kAfter };
  void doom(std::uint64_t writes, Moment moment, std::chrono::milliseconds down);
  // Once: how long the process stays away that died in a write.
  std::chrono::milliseconds down_for() const { return down_; }
  // Nothing goes wrong any more.
  void heal();

  bool full = false;                 // every write fails
  std::uint64_t fails_one_in = 0;    // writes and reads; 0: none
  std::chrono::milliseconds slow{};  // what a write takes
  FakeLoop* loop = nullptr;          // of the process that writes, if there is one
  Bug bug = Bug::kNone;

  struct Counters {
    std::uint64_t writes = 0;
    std::uint64_t failures = 0;
    std::uint64_t crashes = 0;
  };
  Counters counters;

 private:
  void die();

  base::Random& random_;
  std::uint64_t doomed_ = 0;  // counts down; 0: not doomed
  Moment moment_ = Moment::kBefore;
  bool now_ = false;  // this write is the one
  std::chrono::milliseconds down_{};
};

}  // namespace orla::sim
