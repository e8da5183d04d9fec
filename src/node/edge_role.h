// An edge: inputs -> acceptance and partials -> chunks -> the way up. docs/decisions/0001-data-flow.md.
//
// Disk: journal, chunks and input positions are committed together before a chunk is sent; a commit that fails is tried
// again as it was, and meanwhile nothing is read. Memory: the epoch is opened at the cloud before anything is read, and
// every chunk carries the acceptance state that belongs to it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/packed.h"
#include "link/origin_core.h"
#include "link/uplink.h"
#include "model/edge_state.h"
#include "node/edge_chunks.h"
#include "node/input_pump.h"
#include "node/push_desk.h"
#include "node/role.h"
#include "store/edge_store.h"
#include "stream/edge_engine.h"

namespace orla::node {

class EdgeRole final : public Role {
 public:
  // `store` is null for a memory-only edge; `shards`: of its engine, null for one on the loop. All outlive the role,
  // and so does the plan.
  EdgeRole(const model::Plan& plan, const model::NodeSpec& node, World world, store::EdgeStore* store,
           link::UplinkCarrier& carrier, InputPump& pump, stream::ShardWorkers* shards = nullptr);
  ~EdgeRole() override;

  absl::Status start() override;
  void shutdown(std::function<void(StopReport)> done) override;
  void stop_inputs() override;
  void fill(NodeStatus& status) const override;

  // start() then tells, on the loop, how much of the state on disk it has read, and how much there is. Before start().
  void watch_recovery(store::EdgeStore::Progress watch) { watch_recovery_ = std::move(watch); }

  // How raw samples become bytes (`out` is replaced); packed, unless this is called before start().
  using RawEncoder = node::RawEncoder;
  void encode_raw_with(RawEncoder encoder) { encode_raw_ = std::move(encoder); }

  // Takes what a sender pushed; `done` hears of it once it is durable, or why it is not. A push of a producer is
  // decided against those that came before it: a producer sends one at a time.
  void push(Push push, PushDone done);

  // What becomes of samples that come in now.
  enum class Intake : std::uint8_t {
    kOpen,     // they are taken
    kBlocked,  // there is nowhere to put them: inputs wait
    kRefusing  // the outbox is full: they are counted as dropped (pull inputs), or refused
  };
  Intake intake() const;

 private:
  struct Input {
    const model::InputSpec* spec = nullptr;
    bool running = false;
    bool done = false;  // ended, stopped or failed: nothing more comes in this life
    bool stopped = false;
    std::string error;
    std::vector<model::Rejection> rejections;  // the latest few
  };
  // A memory edge's chunk is never cut, since its state is true only together with all rows; it is sealed before it has
  // more than this.
  static constexpr std::size_t kOpenRows = 16'384;
  // Likewise of raw samples, so that the largest chunk with the batch that comes on top can still be sent.
  static constexpr std::size_t kOpenRawSamples = std::size_t{1} << 18;
  using Commit = store::EdgeCommit;  // kept until the store takes it

  bool on_disk() const { return store_ != nullptr; }
  absl::Status restore();
  void new_engine();
  void start_inputs();
  void on_batch(std::size_t input, const model::InputBatch& batch, model::Time paced_now);
  void on_input_failed(std::size_t input, const absl::Status& why);
  void tick();
  // Seals what is due and makes it durable. False when the store cannot take it now.
  bool commit();
  void maintain();
  // The engine's changes, with what was sealed.
  // An error: something cannot be encoded. The changes are taken, so no later commit may be made: see give_up().
  absl::StatusOr<Commit> make_commit(const stream::Sealed* sealed, ChunkMaker& chunks);
  // This life ends here, as if it had been killed before the commit: nothing is committed or acknowledged any more,
  // inputs wait, and the next start goes on from the last commit. Gives false.
  bool give_up(const absl::Status& why);
  bool write(Commit& commit);
  // Of a disk edge several chunks; of a memory edge one, never cut, since its state is true only together with all
  // rows.
  ChunkMaker chunk_maker() const {
    return {on_disk() ? ChunkMaker::Cut::kPieces : ChunkMaker::Cut::kNever, *engine_, encode_raw_};
  }
  void number(std::vector<store::StoredChunk>& chunks, const stream::Sealed& sealed);
  store::EdgeMeta meta_after(const std::vector<store::StoredChunk>& chunks) const;
  void pump_origin();
  void act(const link::OriginCore::Action& action);
  void send_chunk(const link::OriginCore::SendChunk& action);
  void renumber(const link::OriginCore::Renumber& action);
  absl::StatusOr<store::StoredChunk> load(model::Sequence sequence);
  void trim(const link::OriginCore::Trim& action);
  void settle();
  void started(const link::OriginCore::Started& action);
  bool inputs_done() const;
  // Counts a batch that the engine took.
  void count_in(std::size_t input, const model::InputBatch& batch);
  bool commit_due() const;
  // edge_role_push.cc
  static PushDesk::Limits desk_limits(const model::Fleet& fleet);
  std::optional<PushOutcome> refuse_push(std::size_t input, std::size_t bytes) const;
  model::Time paced_now(std::size_t input);
  bool clock_is_set() const;
  void watch_clock();
  bool outbox_full() const;
  void release();
  void finish_shutdown();

  // edge_role_losses.cc
  struct Pending {  // a chunk the cloud has not acknowledged
    std::vector<std::pair<std::string, std::uint64_t>> samples;
    model::Time from = model::kMaxTime;
    model::Time to = model::kMinTime;
    std::uint64_t rows = 0;
    std::uint64_t raw_samples = 0;
    std::string lost;      // the reason: it is a tombstone, and the engine's ledgers say so
    bool durable = false;  // ... and so does the disk (memory: always)
  };
  bool told_of_losses(const store::ChunkFacts& newest) const;
  absl::Status restore_without_journal(const store::EdgeRecovery& recovery);
  absl::Status restore_outbox(const store::EdgeRecovery& recovery);
  void lose(model::Sequence sequence, const std::string& reason);
  void take_up_losses();
  bool write_losses();
  void drop_oldest();
  std::uint64_t outbox_bytes() const;
  model::OutboxFull at_bound() const { return node_.outbox_full; }

  const model::Plan& plan_;
  const model::NodeSpec& node_;
  World world_;
  store::EdgeStore* store_;
  InputPump& pump_;
  stream::ShardWorkers* const shards_;
  Alarms alarms_;
  std::vector<Input> inputs_;
  store::EdgeStore::Progress watch_recovery_;
  std::unique_ptr<stream::EdgeEngine> engine_;
  link::OriginCore origin_;
  link::Uplink uplink_;
  PushDesk desk_;
  std::unique_ptr<Ticker> ticker_;
  std::unique_ptr<Ticker> sync_ticker_;  // for a `fsync` that ticks are too rare for

  std::map<model::Sequence, store::StoredChunk> kept_;  // memory: chunks not yet acknowledged
  std::map<model::Sequence, std::pair<base::SteadyTime, std::uint64_t>> sealed_at_;  // for lag; samples in the chunk
  std::map<model::Sequence, Pending> pending_;
  codec::PackedEncoder encoder_;
  RawEncoder encode_raw_ = [this](const model::Batch& samples, std::string& out) {
    return encoder_.encode(samples, out);
  };
  bool given_up_ = false;
  std::uint64_t raw_sealed_ = 0;                  // raw samples in all chunks
  std::uint64_t tombstones_ = 0;                  // of pending_
  std::vector<model::Tombstone> new_tombstones_;  // the engine has them, no commit yet
  model::Sequence drop_from_ = 0;                 // all up to it are tombstones
  bool nothing_to_drop_ = false;                  // the outbox is full of tombstones
  model::Sequence acknowledged_ = 0;              // as far as the engine's ledgers know what stands
  model::Sequence trimmed_ = 0;                   // as far as the store does
  std::optional<model::Sequence> regained_;       // acknowledgement whose regained samples no commit holds yet
  std::optional<Commit> failed_commit_;
  base::SteadyTime retry_at_{};
  bool trim_owed_ = false;  // what was acknowledged is still on disk, and would be sent again after a start
  base::SteadyTime retry_trim_at_{};
  base::SteadyTime last_commit_{};
  std::uint64_t samples_since_commit_ = 0;
  std::uint64_t samples_in_ = 0;
  std::uint64_t samples_at_seal_ = 0;
  std::uint64_t commit_failures_ = 0;
  std::uint64_t journal_bytes_ = 0;  // memory: of the states the cloud keeps, since the newest snapshot
  std::uint64_t snapshot_bytes_ = 0;
  bool need_snapshot_ = true;
  bool maintain_failed_ = false;
  bool pumping_ = false;           // acting on what the origin says
  bool dirty_ = false;             // something happened since the last commit
  bool force_chunk_ = false;       // an input ended: the cloud has to hear of it even without rows
  std::vector<std::size_t> owed_;  // batches applied and not yet reported consumed, by input
  std::uint64_t frames_sent_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t connects_ = 0;
  std::string uplink_error_;
  std::size_t dictionary_sent_ = 0;
  bool live_ = false;          // it has a push input
  bool clock_was_set_ = true;  // when it was looked at last
  model::Time live_newest_ = model::kMinTime;
  base::SteadyTime live_newest_at_{};  // when a sample of that time came
  bool inputs_started_ = false;
  bool stop_requested_ = false;
  std::function<void(StopReport)> shutdown_done_;
  base::SteadyTime shutdown_deadline_{};
};

}  // namespace orla::node
