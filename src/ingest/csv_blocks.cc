#include "ingest/csv_blocks.h"

#include <utility>

namespace orla::ingest {

void parse_batch(const LineBlock& block, BlockCursor& cursor, RowParser& parser, BatchBuilder& builder,
                 model::InputBatch& out) {
  builder.begin(out);
  if (block.too_long) {
    builder.reject(block.at.row + 1, too_long(0));
  } else if (!block.lines.empty()) {
    const RowParser::Used used = parser.parse(block.lines.substr(cursor.bytes), block.at.row + cursor.rows, builder);
    cursor.bytes += used.bytes;
    cursor.rows += used.rows;
  }
  cursor.done = cursor.bytes == block.lines.size();
  out.end_of_input = cursor.done && block.is_last;
  builder.finish(block.position(cursor.bytes, cursor.rows));
}

CsvBlocks::CsvBlocks(LineBlocks lines, std::vector<std::unique_ptr<RowParser>> parsers, const std::string& input_key,
                     const BatchLimits& limits)
    : lines_(std::move(lines)) {
  for (std::unique_ptr<RowParser>& parser : parsers) {
    workers_.push_back({std::move(parser), BatchBuilder(input_key, limits)});
  }
  // One for each thread to fill, and one that is being used up.
  slots_.resize(workers_.size() == 1 ? 1 : workers_.size() + 1);
}

CsvBlocks::~CsvBlocks() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool CsvBlocks::can_take() const { return !reading_ && !ended_ && slot(taken_).state == State::kFree; }

void CsvBlocks::take(std::size_t worker, std::unique_lock<std::mutex>& lock) {
  Slot& mine = slot(taken_++);
  CsvBlock& block = mine.block;
  mine.state = State::kTaken;
  reading_ = true;
  lock.unlock();
  block.failure = lines_.next(block.lines);
  lock.lock();
  reading_ = false;
  ended_ = !block.failure.ok() || block.lines.is_last;
  const bool parse = parsing_ && block.failure.ok();
  lock.unlock();
  changed_.notify_all();
  block.count = 0;
  block.parser = worker;
  block.parsed = parse;
  for (BlockCursor cursor; parse && !cursor.done;) {
    if (block.count == block.batches.size()) block.batches.emplace_back();
    parse_batch(block.lines, cursor, *workers_[worker].parser, workers_[worker].builder, block.batches[block.count++]);
  }
  lock.lock();
  mine.state = State::kReady;
  changed_.notify_all();
}

void CsvBlocks::run(std::size_t worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || ended_ || can_take(); });
    if (stop_ || ended_) return;
    take(worker, lock);
  }
}

CsvBlock& CsvBlocks::next() {
  for (std::size_t worker = threads_.size() + 1; worker < workers_.size(); ++worker) {
    threads_.emplace_back([this, worker] { run(worker); });
  }
  std::unique_lock lock(mutex_);
  if (given_ > 0) {
    slot(given_ - 1).state = State::kFree;
    changed_.notify_all();
  }
  const std::uint64_t wanted = given_++;
  for (;;) {
    if (wanted < taken_ && slot(wanted).state == State::kReady) return slot(wanted).block;
    if (can_take()) {
      take(0, lock);
    } else {
      changed_.wait(lock);
    }
  }
}

void CsvBlocks::stop_parsing() {
  const std::lock_guard lock(mutex_);
  parsing_ = false;
}

}  // namespace orla::ingest
