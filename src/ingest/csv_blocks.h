// Blocks of lines and the batches in them, parsed by several threads and handed over in their order.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "ingest/csv_input.h"
#include "ingest/line_blocks.h"

namespace orla::ingest {

// A block on its way.
struct CsvBlock {
  LineBlock lines;
  absl::Status failure;  // instead of lines: they cannot be read
  // What was parsed, the first `count` of them, in series numbers of the parser.
  std::vector<model::InputBatch> batches;
  std::size_t count = 0;
  std::size_t parser = 0;
  bool parsed = false;
};

// How far a block has been parsed.
struct BlockCursor {
  std::size_t bytes = 0;
  std::uint64_t rows = 0;
  bool done = false;
};
// Parses the next batch of a block; the cursor is not done. A block without lines has one batch, too, and the last
// batch of the last block ends the input.
void parse_batch(const LineBlock& block, BlockCursor& cursor, RowParser& parser, BatchBuilder& builder,
                 model::InputBatch& out);

// All methods are called by one thread, the owner's, which also constructs and destroys it.
class CsvBlocks {
 public:
  // As many parsers and builders as threads parse, the owner's included.
  CsvBlocks(LineBlocks lines, std::vector<std::unique_ptr<RowParser>> parsers, const std::string& input_key,
            const BatchLimits& limits);
  // Ends the threads.
  ~CsvBlocks();
  CsvBlocks(const CsvBlocks&) = delete;
  CsvBlocks& operator=(const CsvBlocks&) = delete;

  // The next block, parsed unless stop_parsing() was called. Not called after the last one. It is the owner's until
  // the next call.
  CsvBlock& next();
  // Blocks are only read from now on.
  void stop_parsing();

 private:
  enum class State : std::uint8_t { kFree, kTaken, kReady };
  struct Slot {
    CsvBlock block;
    State state = State::kFree;
  };
  struct Worker {
    std::unique_ptr<RowParser> parser;
    BatchBuilder builder;
  };

  void run(std::size_t worker);
  // Whether a block can be read now; with `mutex_`.
  bool can_take() const;
  // Reads a block and parses it; with `lock` on mutex_, which is let go meanwhile.
  void take(std::size_t worker, std::unique_lock<std::mutex>& lock);
  Slot& slot(std::uint64_t number) { return slots_[number % slots_.size()]; }
  const Slot& slot(std::uint64_t number) const { return slots_[number % slots_.size()]; }

  LineBlocks lines_;  // of the thread that has set reading_
  std::vector<Worker> workers_;

  std::mutex mutex_;  // guards all below; a slot's block belongs to who took it, or, when ready, to the owner
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::uint64_t given_ = 0;  // blocks given to the owner
  std::uint64_t taken_ = 0;  // blocks that were begun to be read
  bool reading_ = false;
  bool ended_ = false;  // nothing more is to be read
  bool stop_ = false;
  bool parsing_ = true;

  std::vector<std::thread> threads_;  // begun by the first next()
};

}  // namespace orla::ingest
