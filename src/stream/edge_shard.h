// A part of an edge engine: the series that are its own, with all that taking their samples touches.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "model/ledger.h"
#include "stream/edge_engine.h"
#include "stream/open_rows.h"
#include "stream/raw_samples.h"

namespace orla::stream {

// Decides and folds the samples of its series. Shards of one engine may do so at the same time: each writes only itself
// and the entries of its series in the engine's tables, and of the engine reads only what stays as it is meanwhile.
// What it has to tell the engine waits here until collect().
class EdgeEngine::Shard {
 public:
  // What became of an input's samples since the last collect(). Numbers may be below zero, as complements.
  struct Account {
    std::uint64_t aggregated = 0;
    std::uint64_t open = 0;                // see Input
    model::Time newest = model::kMinTime;  // accepted
    bool noted = false;                    // in noted_
    bool changed = false;                  // something of the following, or else that is kept of the input
    std::uint64_t unmatched = 0;
    std::uint64_t series_limit = 0;
    std::uint64_t group_limit = 0;
    model::SetDigest late;
    std::array<std::uint64_t, kVerdicts> rejected{};
    model::SetDigest rejected_set;
    std::uint64_t held = 0;
  };

  Shard(EdgeEngine& engine, std::uint32_t number)
      : engine_(engine), number_(number), series_(engine.series_), tallies_(engine.tallies_) {}
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // Of the batch, the runs of its series.
  void accept(const Columns& columns);
  // What the series' tally holds reaches the rows.
  void settle_tally(std::uint32_t series);
  // So does what tallies hold of slices that end at or before the time given for their metric.
  void settle_due(const std::vector<model::Time>& ends);
  // No tally holds something of a slice that ends before it.
  model::Time next_due() const { return next_due_; }
  std::size_t tallies() const { return held_tallies_; }
  std::size_t open_rows() const { return rows_.size() + own_tallies_; }
  void reject_held(std::uint32_t series);
  // What is kept of the series has changed.
  void mark_changed(std::uint32_t series);
  // What acceptance holds, by series.
  const absl::flat_hash_map<std::uint32_t, std::vector<model::HeldSample>>& held() const { return held_; }
  void set_held(std::uint32_t series, const std::vector<model::HeldSample>& samples);
  // The row is the input's from now on, with all that is in it.
  void claim(const SliceRows& slice, SmallRow& row, std::uint32_t input);

  // As OpenRows::close().
  std::size_t close_rows(std::size_t stream, model::Time end, OpenRows::Closed& out) {
    located_ = kNone;
    return rows_.close(stream, end, out);
  }
  OpenRows& rows() { return rows_; }
  const OpenRows& rows() const { return rows_; }
  RawSamples& raw() { return raw_; }
  const RawSamples& raw() const { return raw_; }
  // Series whose kept state has changed: appended to `out`, none is left. close_changed() is then due for each.
  void take_changed_series(std::vector<std::uint32_t>& out);
  // Its tally is closed, so that its next sample says that there is something new; what it holds reaches its rows,
  // unless it is the only series of a plain row.
  void close_changed(std::uint32_t series);

  // Calls account(number of an input, Account) and stream(number of one with samples not yet emitted), and forgets
  // them. True when something changed that publication depends on.
  template <typename OnAccount, typename OnStream>
  bool collect(OnAccount account, OnStream stream) {
    for (const std::uint32_t input : noted_) {
      account(input, accounts_[input]);  // in place: copying what was just written would wait for it
      Account& a = accounts_[input];
      if (a.changed) {
        a = Account();
        continue;
      }
      a.aggregated = a.open = 0;
      a.newest = model::kMinTime;
      a.noted = false;
    }
    noted_.clear();
    for (const std::uint32_t number : to_emit_) {
      emits_[number] = 0;
      stream(number);
    }
    to_emit_.clear();
    return std::exchange(publish_due_, false);
  }

 private:
  struct Pick {
    std::uint32_t run = 0;
    std::uint32_t series = 0;
  };
  // edge_shard.cc
  Account& account(std::uint32_t input);
  void accept_run(std::uint32_t series, const Columns& columns, std::size_t run, std::uint32_t begin);
  Acceptance take_acceptance(std::uint32_t series);
  void put_acceptance(std::uint32_t series, const Acceptance& acceptance);
  void count_held(std::uint32_t input, std::int64_t samples);
  void decide_one(std::uint32_t series, Acceptance& acceptance, const model::HeldSample& sample,
                  const AcceptanceRules& rules);
  void settle(std::uint32_t series);
  void locate(std::uint32_t series, model::Time time);
  void add_quantiles(std::span<const std::int32_t> keys);
  void count_series(const Series& series);
  void fold(const Series& series, std::uint32_t input, const model::Time* times, const double* values,
            std::size_t count);
  void count_open(const OpenRows::Place& place, std::uint32_t input, std::uint64_t samples);
  void note_emission(std::size_t stream);
  void accepted(std::uint32_t input, model::Time newest);
  const std::string& identity_of(std::uint32_t series);

  // edge_shard_runs.cc
  std::size_t pick(const Columns& columns, std::size_t from, std::size_t to);
  std::uint32_t take_run(const Columns& columns, Pick pick);
  std::uint32_t tally_short_run(std::uint32_t series, const Columns& columns, std::size_t run);
  std::uint32_t tally_long_run(std::uint32_t series, const Columns& columns, std::size_t run);
  void keep_raw(std::uint32_t series, const model::Batch& batch, std::size_t run, std::uint32_t begin,
                std::uint32_t end);
  bool touch(std::uint32_t series, const Columns& columns, model::Time time);
  void sketch_tallied(std::uint32_t series, const Columns& columns, std::size_t run, std::uint32_t begin,
                      std::uint32_t end);
  void sketch_tallied(std::uint32_t series, model::Time time, double value);

  const EdgeEngine& engine_;
  const std::uint32_t number_;
  // The engine's; of them the entries of its own series.
  model::Blocks<Series, 4096>& series_;
  model::Blocks<Tally, 1024>& tallies_;

  OpenRows rows_;
  RawSamples raw_;
  std::size_t held_tallies_ = 0;  // that hold something
  std::size_t own_tallies_ = 0;   // of these, those of a series that has a row for itself
  model::Time next_due_ = model::kMaxTime;
  absl::flat_hash_map<std::uint32_t, std::vector<model::HeldSample>> held_;  // hardly any series is there
  std::vector<std::uint32_t> changed_series_;                                // since take_changed_series()

  // The rows of a series' slices that hold times in [located_from_, located_to_), one for each of its streams.
  std::uint32_t located_ = kNone;
  model::Time located_from_{};
  model::Time located_to_{};
  std::vector<OpenRows::Place> places_;

  // Since collect():
  std::vector<Account> accounts_;     // by input
  std::vector<std::uint32_t> noted_;  // those with something in them
  std::vector<std::uint8_t> emits_;   // by stream: whether it is one of the following
  std::vector<std::uint32_t> to_emit_;
  bool publish_due_ = false;

  // Of one series, the last that was asked for.
  std::uint32_t identified_ = kNone;
  std::string identity_;

  // Scratch, to save allocations.
  static constexpr std::size_t kPicks = 512;  // runs that are looked at in one go
  std::array<Pick, kPicks> picks_;
  std::vector<Decision> decisions_;
  model::Partial scratch_;
  std::vector<std::int32_t> keys_;
  model::Batch plain_;
};

}  // namespace orla::stream
