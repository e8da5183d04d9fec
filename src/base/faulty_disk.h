// A Disk in memory that fails as real ones do: for tests and the simulator.
//
// It keeps of every file what is durable (survives power loss) and what is only cached (survives the process). It
// outlives the processes that use it: after crash() or power_loss() the files they had open are dead, and the next one
// opens them anew. Everything it chooses comes from its Random.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/disk.h"
#include "base/random.h"

namespace orla::base {

class FaultyDisk final : public Disk {
 public:
  // What is about to happen, or has.
  struct Step {
    enum class Kind : std::uint8_t { kAppend, kSync, kOpen, kRemove, kSyncNames, kRead };
    enum class Moment : std::uint8_t {
      kBefore,  // nothing of it happened yet
      kWithin,  // appends only: a part of the bytes is in the file
      kAfter,   // all of it happened
    };
    Kind kind{};
    Moment moment{};
    std::string name;       // of the file; empty for kSyncNames
    std::size_t bytes = 0;  // to append or to read
  };
  // Called at every moment of every step. An error is what the caller of the disk gets, with what happened by then; a
  // simulator throws there to let the process die.
  using Hook = std::function<absl::Status(const Step&)>;

  // One in so many fails; 0: none.
  struct Odds {
    std::uint64_t append = 0;  // after a part of the bytes
    std::uint64_t sync = 0;    // what was not durable can be read until the power fails, whatever later syncs say
    std::uint64_t open = 0;
    std::uint64_t remove = 0;
    std::uint64_t sync_names = 0;
    std::uint64_t read = 0;
  };

  struct Counters {
    std::uint64_t appends = 0;
    std::uint64_t appended_bytes = 0;
    std::uint64_t syncs = 0;
    std::uint64_t reads = 0;
    std::uint64_t failures = 0;         // by odds and by `capacity`
    std::uint64_t failed_syncs = 0;     // of them
    std::uint64_t failed_removals = 0;  // of them
  };

  static constexpr std::uint64_t kNoLimit = UINT64_MAX;

  // `random` outlives the disk.
  explicit FaultyDisk(Random& random, std::string where = "simulated disk");

  absl::StatusOr<std::vector<Entry>> list() const override;
  absl::StatusOr<std::string> read(const std::string& name, std::uint64_t offset, std::size_t bytes) const override;
  absl::StatusOr<std::unique_ptr<AppendFile>> append(const std::string& name, std::uint64_t keep) override;
  absl::Status remove(const std::string& name) override;
  absl::Status sync_names() override;
  std::string boot() const override;
  std::string where() const override { return where_; }

  // How it fails from now on.
  Hook hook;
  Odds odds;
  std::uint64_t capacity = kNoLimit;  // of all files; an append beyond it is ResourceExhausted once it is full

  // The process dies: what is cached stays.
  void crash();
  // The machine dies, and starts again. Of what was not synced a prefix survives, which may end in garbage; files made
  // or removed since sync_names() may be so or not; a cut may be undone.
  void power_loss();

  // Damage that no process does, durable at once. The file exists.
  void flip_bit(const std::string& name, std::uint64_t bit);
  void cut(const std::string& name, std::uint64_t keep);
  // Fine when there is none.
  void erase(const std::string& name);
  // The file holds these bytes, new when there is none.
  void put(const std::string& name, std::string bytes);

  std::uint64_t used() const;
  // As cached.
  std::map<std::string, std::string> contents() const;
  // One file of them; empty when there is none. Valid until the disk changes.
  std::string_view peek(const std::string& name) const;
  // Whether there is something to read that a failed sync has given up.
  bool gave_up() const;
  const Counters& counters() const { return counters_; }

 private:
  friend class FaultyFile;
  struct File {
    std::string bytes;                                        // as cached
    std::size_t durable = 0;                                  // so many of them survive power loss
    std::string cut_off;                                      // what was durable from there on, until the cut is
    std::vector<std::pair<std::size_t, std::size_t>> doomed;  // [from, to) that a failed sync has given up
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;

  absl::Status at(Step::Kind kind, Step::Moment moment, const std::string& name, std::size_t bytes) const;
  absl::Status fails(std::uint64_t one_in, std::string_view what, const std::string& name) const;
  absl::Status append_to(File& file, const std::string& name, std::string_view bytes);
  absl::Status sync_file(File& file, const std::string& name);
  void lose_power(File& file);
  static void shorten(File& file, std::size_t keep);

  Random& random_;
  std::string where_;
  Names names_;
  Names durable_names_;
  std::uint64_t boots_ = 1;
  std::uint64_t processes_ = 1;
  mutable Counters counters_;
};

}  // namespace orla::base
