// A part of an edge engine: the series that are its own, with all that taking their samples touches.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
    std::uint64_t unmatched = 0;
    std::uint64_t series_limit = 0;
    std::uint64_t group_limit = 0;
    model::SetDigest late;
    std::array<std::uint64_t, kVerdicts> rejected{};
    model::SetDigest rejected_set;
    std::uint64_t held = 0;
    std::uint64_t open = 0;                // see Input
    model::Time newest = model::kMinTime;  // accepted
    bool changed = false;                  // something that is kept of the input
    bool noted = false;                    // in noted_
  };

  Shard(const EdgeEngine& engine, std::uint32_t number, std::vector<Series>& series, std::vector<Tally>& tallies,
        std::vector<Slot>& slots)
      : engine_(engine), number_(number), series_(series), tallies_(tallies), slots_(slots) {}
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // Of the batch, the runs of its series.
  void accept(const Columns& columns);
  // What the tallies hold reaches the rows, and watermarks the series.
  void settle_tallies();
  std::size_t open_tallies() const { return touched_.size(); }
  void reject_held(std::uint32_t series);
  // The row is the input's from now on, with all that is in it.
  void claim(OpenRows::Row& row, std::uint32_t input);

  OpenRows& rows() { return rows_; }
  const OpenRows& rows() const { return rows_; }
  RawSamples& raw() { return raw_; }
  const RawSamples& raw() const { return raw_; }
  // Series whose kept state has changed: appended to `out`, none is left.
  void take_changed_series(std::vector<std::uint32_t>& out);

  // Calls account(number of an input, Account) and stream(number of one with samples not yet emitted), and forgets
  // them. True when something changed that publication depends on.
  template <typename OnAccount, typename OnStream>
  bool collect(OnAccount account, OnStream stream) {
    for (const std::uint32_t input : noted_) {
      account(input, accounts_[input]);  // in place: copying what was just written would wait for it
      accounts_[input] = Account();
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
  void decide_one(std::uint32_t series, const model::HeldSample& sample, const AcceptanceRules& rules);
  void settle(std::uint32_t series);
  void locate(Series& series, model::Time time);
  void add_quantiles(const Series& series, std::span<const std::int32_t> keys);
  void count_series(const Series& series);
  void fold(Series& series, std::uint32_t input, const model::Time* times, const double* values, std::size_t count);
  void count_open(OpenRows::Row& row, std::uint32_t input, std::uint64_t samples);
  void note_change(const Slot& slot);
  void mark_changed(std::uint32_t series);
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
  void sketch_tallied(std::uint32_t series, const Columns& columns, std::uint32_t begin, std::uint32_t end);
  void sketch_tallied(std::uint32_t series, double value);
  void settle_tally(std::uint32_t series);

  const EdgeEngine& engine_;
  const std::uint32_t number_;
  // The engine's; of them the entries of its own series.
  std::vector<Series>& series_;
  std::vector<Tally>& tallies_;
  std::vector<Slot>& slots_;

  OpenRows rows_;
  RawSamples raw_;
  std::vector<std::uint32_t> touched_;         // series whose tally is open
  std::vector<std::uint32_t> changed_series_;  // since take_changed_series()

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
