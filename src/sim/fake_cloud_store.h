// A CloudStore in memory. What it keeps is in a CloudDisk, which outlives the store as a disk outlives a process.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/fake_disk.h"
#include "store/cloud_store.h"
#include "verify/oracle.h"

namespace orla::sim {

struct CloudDisk {
  using WindowKey = std::tuple<std::string, std::string, model::Time, std::vector<model::Label>>;
  std::map<model::NodeName, store::OriginRow> origins;
  std::vector<store::ClosedEpoch> closed;
  std::map<model::NodeName, std::vector<model::StateEntry>> states;
  std::map<WindowKey, store::WindowRow> windows;
  std::map<std::pair<std::string, model::Time>, store::ParkedRow> parked;  // by identity of the group, slice
  std::map<std::string, model::Time> publication;
  std::map<std::string, model::Time> anchors;
  std::map<std::pair<std::string, std::int64_t>, store::StepProgress> steps;
  std::map<std::string, std::set<std::vector<model::Label>>> groups;
  verify::Oracle::RawSamples samples;
  std::uint64_t forecasts = 0;
  std::string problem;  // the first commit that takes back what an earlier one said
};

class FakeCloudStore final : public store::CloudStore {
 public:
  // Both outlive the store.
  FakeCloudStore(CloudDisk& kept, FakeDisk& disk) : kept_(kept), cache_(kept), disk_(disk) {}

  absl::StatusOr<store::CloudRecovery> recover() override;
  absl::Status commit(const store::CloudCommit& commit) override;
  absl::StatusOr<std::vector<store::WindowRow>> load_windows(const std::string& table, const std::string& window,
                                                             model::Time start) override;
  absl::StatusOr<std::optional<model::Time>> next_start(const std::string& table, const std::string& window,
                                                        model::Time from) override;
  absl::StatusOr<std::vector<model::StateEntry>> load_states(const model::NodeName& node) override;

 private:
  void apply(const store::CloudCommit& commit);
  static void keep_samples(const store::CloudCommit& commit, CloudDisk& in);
  // What no commit may do, whatever happened.
  std::string look(const store::CloudCommit& commit) const;

  CloudDisk& kept_;
  CloudDisk cache_;  // as the process sees it: the same, unless a bug is planted
  FakeDisk& disk_;
  std::uint64_t commits_ = 0;
};

}  // namespace orla::sim
