// The raw samples of a cloud's file, as its writer sees them: blocks per series and hour, and the tail.
//
// A commit's samples of one series and hour become a block of their own when they are many. All others go, as one row
// of the commit, to the tail, and so do those of a series and hour that the tail has samples of. A tail that has grown
// beyond its bounds is sorted into blocks; a last block of an hour that is small is then written anew with what
// follows it. So the blocks of a series and hour in the order of their numbers, then the tail, are the order in which
// samples were taken; and the work of a commit is bounded by what it brings and by the tail.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "store/cloud_store.h"
#include "store/sample_format.h"
#include "store/sqlite.h"

namespace orla::store {

// Where the tail is sorted into blocks.
struct TailBounds {
  std::size_t samples = kTailSamples;
  std::size_t rows = kTailRows;
};

// Not thread-safe. The database outlives it.
class SampleTable {
 public:
  SampleTable(Database& database, SampleFormat format, TailBounds bounds)
      : database_(database), format_(std::move(format)), bounds_(bounds) {}

  absl::Status prepare();
  // In the open transaction. Afterwards kept() or given_up().
  absl::Status write(const std::vector<model::Series>& series, const std::vector<model::Batch>& samples);
  void given_up();  // the transaction was rolled back
  void kept() { new_series_.clear(); }

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;  // series, start of the hour
  struct Piece {
    Key key;
    const model::Batch* batch = nullptr;
    std::uint32_t run = 0;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  absl::Status load_tail();
  absl::StatusOr<std::int64_t> number_of(const model::Series& series);
  static void cut(const model::Batch& batch, const std::vector<std::int64_t>& numbers, std::vector<Piece>& out);
  absl::Status write_blocks(std::span<const Piece> pieces);
  absl::Status write_block(const Key& key);
  absl::Status write_tail(std::span<const Piece> pieces);
  absl::Status write_tail_row();
  absl::Status sort_tail();
  absl::Status merge_last(std::span<const Piece> pieces);

  Database& database_;
  const SampleFormat format_;
  const TailBounds bounds_;
  Statement put_series_, put_block_, last_block_, drop_block_, put_tail_, get_tail_, drop_tail_;
  absl::flat_hash_map<std::string, std::int64_t> series_;  // metric and labels -> number
  std::vector<std::string> new_series_;                    // of the open transaction
  std::int64_t next_series_ = 1;
  bool tail_known_ = false;
  absl::flat_hash_set<Key> tail_keys_;
  std::size_t tail_samples_ = 0;
  std::size_t tail_rows_ = 0;
  // Scratch.
  model::Batch block_;
  std::string bytes_;
};

}  // namespace orla::store
