// An edge's heart: decides which samples count, folds them into partials by stream, slice and group, and says which
// slices are published. Batch in, rows out; time is an argument.
//
// Life: construct; restore() the newest snapshot and the changes after it, in order, if there are any; then apply(),
// tick(), end_input() as things happen. At every commit: seal(), then take_changes() (or snapshot()), and both are kept
// together. A new engine restored from what was kept goes on exactly as this one would have.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/version.h"
#include "model/batch.h"
#include "model/blocks.h"
#include "model/edge_state.h"
#include "model/label_table.h"
#include "model/plan.h"
#include "stream/acceptance.h"
#include "stream/open_rows.h"
#include "stream/raw_samples.h"
#include "stream/shard_workers.h"
#include "stream/tally.h"

namespace orla::stream {

// At a bound, samples that would need more are dropped, counted by reason; the batch of a producer too many is refused.
struct EngineLimits {
  std::size_t series = 1'000'000;                   // "series_limit"
  std::size_t groups = 4'000'000;                   // "group_limit": a series all of whose groups do not fit
  std::size_t open_rows = 8'000'000;                // beyond it, seal(kPublished) seals everything
  std::size_t producers = 10'000;                   // of all inputs; none is ever forgotten
  model::Time clock_set_after = base::BuildTime();  // see future_bound()
};

enum class SealScope : std::uint8_t {
  kPublished,   // slices that are published, corrections of such, and what is due by `emit`
  kEverything,  // all open rows
};
enum class SealWhen : std::uint8_t {
  kSomethingNew,  // rows, raw samples, or a slice's end was published
  kAlways,
};

struct SealedRows {
  model::PartialRows rows;  // canonical; exactly the samples not sealed before
  // Parallel to rows: whose samples a row is counted as, an index into Sealed::ledgers: of all rows of an input the
  // counts are its samples. (Of an input that shares groups with others, only of all these together.) kRepeats: a row
  // that summarizes samples that another stream's rows count.
  std::vector<std::uint32_t> counted;
  static constexpr std::uint32_t kRepeats = UINT32_MAX;
};

// The content of the chunk to come.
struct Sealed : SealedRows {
  std::vector<model::Publication> publications;                // sorted by metric
  std::vector<std::pair<std::string, model::Ledger>> ledgers;  // by input key; totals
  // Parallel to ledgers: accepted samples that are not open any more.
  std::vector<std::uint64_t> sealed;
  // Of metrics that are kept raw: every sample accepted since the last seal, whatever became of its rows.
  std::vector<RawBatch> raw;
};
// Samples of one RawBatch: some 50 KB as they are sent, at most 1 MiB.
inline constexpr std::size_t kRawBatchSamples = std::size_t{1} << 16;

// Takes what is long of a state: in pieces, in order, none empty and each of at most model::kPiece. A piece may be
// moved from.
class StateSink {
 public:
  virtual ~StateSink() = default;
  virtual void series(std::vector<model::SeriesState>& piece) = 0;
  virtual void open(model::PartialRows& piece) = 0;
};

// Not thread-safe. `plan` outlives it.
class EdgeEngine {
 public:
  // input_keys: of this edge's inputs; their numbers here are the `input` arguments below.
  // workers: how many shards there are, and who does their work; outlives the engine. null: there is one, the caller's.
  // What the engine decides, seals and keeps is the same whatever they are.
  EdgeEngine(const model::Plan& plan, const std::vector<std::string>& input_keys, EngineLimits limits = {},
             ShardWorkers* workers = nullptr);
  ~EdgeEngine();

  // A snapshot replaces everything. INVALID_ARGUMENT for a state that contradicts itself; the engine is then unusable.
  absl::Status restore(const model::EdgeState& state);

  // Decides and folds a batch; also ends the input when the batch says so. clock_now: the node's clock, for live inputs
  // and `emit`. Nothing is done, and the status is: INVALID_ARGUMENT for a batch that contradicts itself;
  // ALREADY_EXISTS for a producer's sequence number at or below its last one; RESOURCE_EXHAUSTED for a producer beyond
  // the limit.
  absl::Status apply(std::size_t input, const model::InputBatch& batch, model::Time clock_now);
  // The same for a batch that there is no room for: its samples are dropped, counted by the reason.
  absl::Status refuse(std::size_t input, const model::InputBatch& batch, const std::string& reason);
  // Accepted samples, by input key, whose rows are lost for good: from `aggregated` to `dropped`. What an input does
  // not have is taken from the others.
  void lose(const std::vector<std::pair<std::string, std::uint64_t>>& samples, const std::string& reason);
  // The other way: they turned out not to be lost.
  void regain(const std::vector<std::pair<std::string, std::uint64_t>>& samples, const std::string& reason);
  // The input's paced clock, in event time: series idle by it do not hold publication. Never called for inputs at speed
  // 0. True when a slice's end was published by it.
  bool tick(std::size_t input, model::Time paced_now);
  // Nothing follows. Held samples are rejected; a metric whose inputs have all ended is published entirely.
  void end_input(std::size_t input);
  // Publishes all slices that hold samples now: the inputs are told to stop.
  void publish_open();
  // Whether rows are due by their stream's `emit` at the clock's time; the next seal() then takes them.
  bool emission_due(model::Time clock_now);

  std::optional<Sealed> seal(SealScope scope, SealWhen when);
  // What changed since the last take_changes() or restore().
  model::EdgeState take_changes();
  model::EdgeState snapshot();
  // The same, but what is long goes elsewhere, in pieces as a StateSink gets them, and is empty in the result. It does
  // not call the engine meanwhile, but for what is const.
  using TakeSealed = absl::FunctionRef<void(SealedRows&)>;
  std::optional<Sealed> seal(SealScope scope, SealWhen when, TakeSealed take);
  model::EdgeState take_changes(StateSink& sink);
  model::EdgeState snapshot(StateSink& sink);

  const model::InputState& input(std::size_t input) const { return inputs_[numbers_[input]].state; }
  // How many series the input has defined in this life; its next one has this number.
  std::size_t input_series(std::size_t input) const { return inputs_[numbers_[input]].series.size(); }
  // Of all inputs this edge ever had, by key.
  std::vector<std::pair<std::string, model::InputState>> inputs() const;
  // GroupIds 0..group_count() - 1 are given out, append-only within a life. `id` is one of them.
  std::size_t group_count() const { return groups_.size(); }
  model::GroupDef group(model::GroupId id) const;
  model::Duration slice_of(model::GroupId id) const { return streams_[groups_.kind(index(id))].slice; }
  std::size_t series_count() const { return series_.size(); }
  std::size_t producer_count() const { return producer_count_; }
  // Last sequence number of a producer; 0: none. `input` as in apply().
  std::uint64_t producer_sequence(std::size_t input, std::string_view producer) const;
  // In memory: one that several shards have parts of counts several times, and so do two parts of a series' own.
  std::size_t open_rows() const;
  // Those the next seal takes.
  std::size_t raw_samples() const;
  // Sorted by metric: those that this edge's inputs can produce and a rollup wants. Never goes back.
  std::vector<model::Publication> publications();

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Stream {
    std::string name;
    std::uint64_t definition = 0;
    std::size_t metric = 0;  // index into metrics_; kNoMetric for streams the plan no longer has
    model::Duration slice{};
    int decimals = 0;
    model::Duration emit{};
    std::optional<model::Time> emit_since;  // clock at the first sample not yet emitted
    model::Time taken = model::kMinTime;    // rows of slices up to it were taken since take_changes()
  };
  struct Metric {
    std::vector<std::size_t> streams;
    std::vector<std::size_t> feeders;  // indices into inputs_ of inputs declared to produce it
    model::Duration disorder{};
    model::Duration allowed_lateness{};
    int decimals = 0;
    model::Duration boundary{};  // every slice's end is a multiple of it
    std::uint32_t raw = kNone;   // index into streams_ of its raw stream
    bool quantiles = false;      // of any stream
    bool distinct = false;       // of any stream
    bool plain = false;          // one stream, and no sketches: a series has one row a slice, which is nothing but sums
    bool fed = false;            // declared or seen: it has a publication
    model::Time publication = model::kMinTime;
    bool publication_changed = false;    // since take_changes()
    model::Time told = model::kMinTime;  // published boundary at the last seal
  };
  struct Input {
    model::InputState state;
    const model::InputSpec* spec = nullptr;   // null: the edge no longer has it
    std::vector<std::uint32_t> series;        // by the input's own number: index into series_, or a Fate
    model::Time paced = model::kMinTime;      // kMinTime: unknown
    model::Time next_idle = model::kMaxTime;  // before it, the paced clock changes no publication
    bool changed = false;                     // since take_changes()
    std::uint64_t open = 0;                   // samples in open rows that are counted as its own
    std::map<std::string, std::uint64_t, std::less<>> producers;  // last sequence number
    std::set<std::string> changed_producers;                      // since take_changes()
  };
  // Why an input's series is not kept, in Input::series.
  enum Fate : std::uint32_t { kUnmatched = UINT32_MAX, kSeriesLimit = UINT32_MAX - 1, kGroupLimit = UINT32_MAX - 2 };

  static constexpr std::uint32_t kNoMetric = (1U << 29U) - 1;
  struct Series {
    std::uint32_t metric : 29 = 0;  // kNoMetric: no rollup wants it any more
    std::uint32_t changed : 1 = 0;  // since take_changes()
    std::uint32_t held : 1 = 0;     // acceptance holds samples of it
    std::uint32_t owner : 1 = 0;    // its metric is plain, and its group has no other series
    std::uint32_t slots = kNone;    // of a plain metric its group; else the first in slots_, one for each stream of the
                                    // metric; kNone: not placed yet
  };
  static_assert(sizeof(Series) == 8);
  struct Placed {
    std::uint32_t slots = kNone;
    std::uint32_t raw = kNone;
  };
  // What a batch is to the fast path.
  struct Columns;
  class Shard;

  // A series is one shard's for its life. Neighbours go to different ones.
  static std::uint32_t shard_of(std::uint32_t series, std::size_t shards) {
    return static_cast<std::uint32_t>((std::uint64_t{series * 2654435769U} * shards) >> 32U);
  }
  std::uint32_t shard_of(std::uint32_t series) const { return shard_of(series, shards_.size()); }

  // Its group in the k-th stream of its metric.
  model::GroupId group_of(const Series& series, std::size_t k) const {
    return metrics_[series.metric].plain ? model::GroupId{series.slots} : slots_[series.slots + k];
  }
  std::uint32_t raw_of(std::uint32_t series) const { return series < raw_groups_.size() ? raw_groups_[series] : kNone; }

  // edge_engine.cc
  // What applied and refused batches have in common: names, position, accounts of what arrived.
  void receive(Input& input, const model::InputBatch& batch);
  static std::vector<model::Label> group_labels(const model::Series& series, const model::StreamDef& stream);
  model::Series definition(std::uint32_t series) const;
  std::uint32_t find_metric(std::string_view name) const;
  absl::Status check(const Input& input, const model::InputBatch& batch) const;
  absl::Status check_producer(const Input& input, const model::InputBatch& batch) const;
  std::uint32_t define(const Input& input, const model::Series& series);
  std::optional<std::uint32_t> find_series(const model::Series& series) const;
  std::optional<Placed> place(std::uint32_t number, const model::Series& series, std::size_t metric);
  void settle_in(std::uint32_t group, std::uint32_t shard);
  void join(std::uint32_t group, std::uint32_t series);
  void set_place(std::uint32_t series, const Placed& placed);
  std::uint32_t add_series(const model::Series& series, std::uint32_t metric);
  Columns columns_of(std::uint32_t input, const model::Batch& batch);
  void on_shards(std::size_t effort, absl::FunctionRef<void(Shard&)> work);
  void collect();
  void settle_due(const std::vector<model::Time>& ends);
  std::size_t open_tallies() const;
  AcceptanceRules rules_for(const Input& input, const Metric& metric) const;

  // edge_engine_seal.cc
  void publish();
  void raise(Metric& metric, model::Time time);
  bool feeds(std::size_t input, const Metric& metric) const;
  bool all_ended(const Metric& metric) const;
  model::Time boundary(const Metric& metric) const;
  bool boundary_moved() const;
  bool no_rows(std::size_t stream) const;
  void put_rows(std::span<SliceRows* const> slices, TakeSealed take);
  std::vector<std::uint64_t> sealed_samples() const;

  // edge_engine_losses.cc
  bool counts(std::size_t stream) const;
  void claim_restored();
  void add_names(Input& input, const model::InputBatch& batch);

  // edge_engine_state.cc
  void clear();
  std::uint32_t listed_input(const std::string& key);
  void number_inputs();
  std::size_t stream_of(const model::GroupDef& group);
  absl::Status restore_names(const model::EdgeState& state);
  absl::Status restore_rows(const model::EdgeState& state);
  absl::Status restore_series(const model::EdgeState& state);
  absl::Status restore_producers(const model::EdgeState& state);
  void list_names(model::EdgeState& state, std::size_t from_series, std::size_t from_group) const;
  model::SeriesState state_of(std::uint32_t series) const;
  std::vector<model::SealedStream> sealed_streams();
  struct OwnRow;
  void copy_rows(std::vector<OwnRow>& own, RowOrder::Which which, StateSink& sink) const;
  void take_changed_rows(std::vector<OwnRow>& own, StateSink& sink);
  void all_rows(StateSink& sink);

  const model::Plan& plan_;
  const std::vector<std::string> input_keys_;
  const EngineLimits limits_;

  std::vector<Stream> streams_;  // of the plan, then those only restored rows belong to
  std::size_t plan_streams_ = 0;
  std::vector<Metric> metrics_;  // of the plan
  std::vector<std::size_t> metrics_by_name_;
  std::vector<Input> inputs_;
  std::size_t listed_inputs_ = 0;       // the first so many were listed in a state; the others follow at the next one
  std::vector<std::uint32_t> numbers_;  // by the caller's number: index into inputs_
  std::size_t producer_count_ = 0;

  model::Texts texts_;
  model::Blocks<Series, 4096> series_;
  model::LabelTable definitions_{texts_};  // parallel to series_; kind: the metric's name, a number of texts_
  model::Blocks<Tally, 1024> tallies_;     // parallel to series_
  std::vector<std::uint32_t> raw_groups_;  // by series, as far as there are: its group in the metric's raw stream
  model::Blocks<model::GroupId, 1024> slots_;
  std::vector<std::uint64_t> slot_hashes_;  // parallel to slots_: what its stream counts; empty when no stream does
  bool hashes_wanted_ = false;
  model::LabelTable groups_{texts_};           // by GroupId; kind: index into streams_
  model::Blocks<std::uint32_t, 4096> owners_;  // by GroupId, as far as there are: its only series, if there is just one
  static constexpr std::uint32_t kNobody = UINT32_MAX;
  static constexpr std::uint32_t kShared = UINT32_MAX - 1;

  bool keeps_raw_ = false;  // of some metric

  InlineShards alone_{1};
  ShardWorkers& workers_;
  std::vector<std::unique_ptr<Shard>> shards_;  // as many as workers_
  // By GroupId, when there are several shards: in which of them its rows may be. Shorter than groups_: kNoShard.
  std::vector<std::uint8_t> homes_;
  static constexpr std::uint8_t kNoShard = 255;
  static constexpr std::uint8_t kManyShards = 254;
  static_assert(kMaxShards < kManyShards);
  bool unclaimed_ = false;   // there may be restored rows of which no input is known
  bool publish_due_ = true;  // something that the publications depend on has changed
  model::Time clock_ = model::kMinTime;

  // Since take_changes():
  std::size_t known_series_ = 0;
  std::size_t known_groups_ = 0;
  bool taken_everything_ = false;

  // Scratch, to save allocations.
  std::vector<std::int32_t> scaled_;
};

}  // namespace orla::stream
