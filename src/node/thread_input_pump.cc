#include "node/thread_input_pump.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "ingest/pacer.h"

namespace orla::node {

struct ThreadInputPump::Shared {
  Shared(base::Loop& l, const base::Clock& c, ingest::MakeInput m) : loop(l), clock(c), make_input(std::move(m)) {}
  base::Loop& loop;
  const base::Clock& clock;
  const ingest::MakeInput make_input;
  Events events;         // on the loop only
  bool stopped = false;  // on the loop only: what is still on its way is not delivered
};

struct ThreadInputPump::Reader {
  Reader(std::size_t n, model::InputSpec s, model::Position p)
      : input(n), spec(std::move(s)), from(p), pacer(spec.speed, spec.max_jump) {}
  const std::size_t input;
  const model::InputSpec spec;
  const model::Position from;
  bool current = true;  // on the loop only: false once the input was started anew

  std::mutex mutex;  // guards all below
  std::condition_variable wake;
  std::size_t outstanding = 0;
  std::vector<std::shared_ptr<model::InputBatch>> spare;  // delivered; each is filled again
  bool stop = false;
  ingest::Pacer pacer;
  std::atomic<double> progress{-1};
  std::thread thread;

  // False: told to stop.
  bool wait_until(const base::Clock& clock, base::SteadyTime due) {
    std::unique_lock lock(mutex);
    while (!stop) {
      const auto left = due - clock.steady_now();
      if (left <= left.zero()) return true;
      wake.wait_for(lock, left);
    }
    return false;
  }
  bool wait_for_room() {
    std::unique_lock lock(mutex);
    wake.wait(lock, [this] { return stop || outstanding < kMaxOutstanding; });
    if (!stop) ++outstanding;
    return !stop;
  }
  std::shared_ptr<model::InputBatch> take_spare() {
    const std::lock_guard lock(mutex);
    if (spare.empty()) return std::make_shared<model::InputBatch>();
    std::shared_ptr<model::InputBatch> batch = std::move(spare.back());
    spare.pop_back();
    return batch;
  }
  void give_back(std::shared_ptr<model::InputBatch> batch) {
    const std::lock_guard lock(mutex);
    spare.push_back(std::move(batch));
  }
  void end() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    if (thread.joinable()) thread.join();
  }
};

ThreadInputPump::ThreadInputPump(base::Loop& loop, const base::Clock& clock, ingest::MakeInput make_input)
    : loop_(loop), clock_(clock), shared_(std::make_shared<Shared>(loop, clock, std::move(make_input))) {}

ThreadInputPump::~ThreadInputPump() { stop(); }

void ThreadInputPump::set_events(Events events) { shared_->events = std::move(events); }

void ThreadInputPump::start(std::size_t input, const model::InputSpec& spec, model::Position from) {
  shared_->stopped = false;
  if (readers_.size() <= input) readers_.resize(input + 1);
  if (readers_[input] != nullptr) {
    readers_[input]->end();
    readers_[input]->current = false;
  }
  auto reader = std::make_shared<Reader>(input, spec, from);  // with its thread and its tasks on the loop
  readers_[input] = reader;
  reader->thread = std::thread([shared = shared_, reader] { run(shared, reader); });
}

void ThreadInputPump::run(const std::shared_ptr<Shared>& shared, const std::shared_ptr<Reader>& reader) {
  const auto fail = [&](const absl::Status& why) {
    shared->loop.post([shared, reader, why] {
      if (!shared->stopped && reader->current) shared->events.failed(reader->input, why);
    });
  };
  absl::StatusOr<std::unique_ptr<ingest::Input>> input = shared->make_input(reader->spec, reader->from);
  if (!input.ok()) return fail(input.status());
  while (reader->wait_for_room()) {
    // Shared with the copies of the std::function on the loop.
    const std::shared_ptr<model::InputBatch> batch = reader->take_spare();
    const absl::StatusOr<bool> more = (*input)->next(*batch);
    if (!more.ok()) return fail(more.status());
    if (!*more) return;
    reader->progress = (*input)->progress();
    std::chrono::nanoseconds hold{};
    const base::SteadyTime now = shared->clock.steady_now();
    {
      const std::lock_guard lock(reader->mutex);
      hold = reader->pacer.wait(batch->samples, now);
    }
    if (hold.count() > 0 && !reader->wait_until(shared->clock, now + hold)) return;
    const bool last = batch->end_of_input;
    shared->loop.post([shared, reader, batch] {
      if (shared->stopped || !reader->current) return;
      model::Time paced = model::kMinTime;
      {
        const std::lock_guard lock(reader->mutex);
        paced = reader->pacer.event_now(shared->clock.steady_now());
      }
      shared->events.batch(reader->input, *batch, paced);
      reader->give_back(batch);
    });
    if (last) return;
  }
}

void ThreadInputPump::consumed(std::size_t input) {
  if (input >= readers_.size() || readers_[input] == nullptr) return;
  Reader& reader = *readers_[input];
  {
    const std::lock_guard lock(reader.mutex);
    if (reader.outstanding > 0) --reader.outstanding;
  }
  reader.wake.notify_all();
}

model::Time ThreadInputPump::paced_now(std::size_t input) const {
  if (input >= readers_.size() || readers_[input] == nullptr) return model::kMinTime;
  Reader& reader = *readers_[input];
  const std::lock_guard lock(reader.mutex);
  return reader.pacer.event_now(clock_.steady_now());
}

double ThreadInputPump::progress(std::size_t input) const {
  if (input >= readers_.size() || readers_[input] == nullptr) return -1;
  return readers_[input]->progress;
}

void ThreadInputPump::stop() {
  shared_->stopped = true;
  for (const std::shared_ptr<Reader>& reader : readers_) {
    if (reader == nullptr) continue;
    reader->end();
    reader->current = false;
  }
}

}  // namespace orla::node
