// The cloud: frames in, windows and forecasts out, in one transaction with the cursors; then it acknowledges.
//
// A commit the store cannot take is tried again as it was; meanwhile frames are refused ("later"), so edges keep them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/packed.h"
#include "link/downlink.h"
#include "link/root_core.h"
#include "node/cloud_bridge.h"
#include "node/group_table.h"
#include "node/role.h"
#include "store/cloud_store.h"
#include "stream/cloud_engine.h"

namespace orla::node {

class CloudRole final : public Role {
 public:
  // All outlive the role, and so does the plan.
  CloudRole(const model::Plan& plan, const model::NodeSpec& node, World world, store::CloudStore& store,
            link::DownlinkCarrier& below);

  absl::Status start() override;
  void shutdown(std::function<void(StopReport)> done) override;
  void fill(NodeStatus& status) const override;

 private:
  struct Child {
    model::NodeName node;
    model::Layer layer{};
    base::SteadyTime since{};
    ChildGroups groups;
    std::uint64_t frames = 0;
    std::uint64_t bytes = 0;
  };

  absl::Status restore();
  absl::StatusOr<model::GroupId> intern(const model::GroupDef& group);
  absl::StatusOr<std::vector<model::Batch>> samples_of(const std::vector<model::SampleBlock>& blocks);
  void keep(const std::vector<model::SampleBlock>& blocks, std::vector<model::Batch> samples);
  void on_child_message(link::ConnectionId connection, link::UpMessage message);
  void on_frame(link::ConnectionId connection, Child& child, link::FrameMessage frame);
  void note(const model::Range& range);
  void tick();
  void commit();
  absl::StatusOr<store::CloudCommit> build_commit();
  absl::Status predict(const stream::CloudChanges& changes, store::CloudCommit& commit);
  void pump_root();

  const model::Plan& plan_;
  const model::NodeSpec& node_;
  World world_;
  store::CloudStore& store_;
  Alarms alarms_;
  StoredWindows windows_;
  std::unique_ptr<stream::CloudEngine> engine_;
  std::unique_ptr<link::RootCore> root_;
  link::Downlink downlink_;
  std::unique_ptr<Ticker> ticker_;
  std::map<link::ConnectionId, Child> children_;
  std::map<model::NodeName, store::OriginRow> origins_;  // as of the last frame folded
  std::vector<std::pair<model::NodeName, model::StateEntry>> new_states_;
  std::vector<std::optional<model::Series>> raw_groups_;  // by GroupId; nothing: of no raw stream
  std::vector<std::uint32_t> raw_numbers_;                // by GroupId: in new_series_, or kNoNumber
  std::vector<model::Series> new_series_;                 // of the samples below
  std::vector<model::GroupId> numbered_;                  // whose groups are those
  std::vector<model::Batch> new_samples_;                 // folded in, not yet made into a commit
  std::uint64_t pending_samples_ = 0;
  codec::PackedDecoder decoder_;
  std::optional<stream::CloudChanges> taken_;  // from the engine, not yet made into a commit
  std::optional<store::CloudCommit> failed_commit_;
  base::SteadyTime last_commit_{};
  base::SteadyTime retry_at_{};
  std::uint64_t bytes_since_commit_ = 0;
  bool commit_again_ = false;
  std::string listen_;
  std::uint64_t frames_in_ = 0;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t rows_folded_ = 0;
  std::uint64_t samples_kept_ = 0;
  std::uint64_t windows_written_ = 0;
  std::uint64_t forecasts_written_ = 0;
  std::uint64_t commits_ = 0;
  std::uint64_t commit_failures_ = 0;
};

}  // namespace orla::node
