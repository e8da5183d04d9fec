// Senders that push samples into simulated edges, as a client would over HTTP: one push at a time, again until it is
// acknowledged, with answers that get lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/series.h"
#include "model/time.h"
#include "node/push.h"
#include "sim/event_queue.h"

namespace orla::sim {

enum class Resends : std::uint8_t {
  kNumbered,  // with (producer, sequence): counted once
  kAnyhow,    // without: at least once
};

class Pusher {
 public:
  struct Sample {
    std::uint32_t series = 0;  // of this pusher
    model::Time time{};
    double value = 0;
    bool future = false;  // further ahead of every clock than the input allows
  };
  // Hands a push to the node's loop: false when nobody is there.
  using Deliver = std::function<bool(std::function<node::Push(ingest::SeriesTable&)> make, node::PushDone done)>;
  struct Plan {
    std::string name;   // of the producer
    std::string input;  // key
    Resends resends = Resends::kNumbered;
    std::vector<model::Series> series;
    std::vector<std::vector<Sample>> pushes;
  };

  // All outlive it; so do the queue's events that it makes.
  Pusher(EventQueue& queue, base::Random& random, Plan plan, Deliver deliver);
  void start();
  // No answer is lost any more.
  void heal() { healed_ = true; }

  const Plan& plan() const { return plan_; }
  bool done() const { return next_ == plan_.pushes.size(); }
  std::uint64_t acknowledged_pushes() const { return next_; }
  std::uint64_t acknowledged_samples() const { return acknowledged_samples_; }
  std::uint64_t sent_samples() const { return sent_samples_; }
  // Something that no answer may say; empty when there was nothing.
  const std::string& problem() const { return problem_; }
  // Called when a push was acknowledged, with the samples acknowledged so far.
  std::function<void(std::uint64_t samples)> acknowledged;

 private:
  void send();
  void answered(std::uint64_t attempt, const node::PushOutcome& outcome);
  void again(std::chrono::milliseconds pause);

  EventQueue& queue_;
  base::Random& random_;
  const Plan plan_;
  const Deliver deliver_;
  std::size_t next_ = 0;
  std::uint64_t attempt_ = 0;
  std::uint64_t tries_ = 0;  // of the next push
  std::uint64_t acknowledged_samples_ = 0;
  std::uint64_t sent_samples_ = 0;
  bool healed_ = false;
  std::string problem_;
};

// What one edge's push input is sent: by one or two producers that number their pushes, each with series of its own,
// and by one that does not, of a metric that nobody declared.
std::vector<Pusher::Plan> make_pushes(base::Random& random, const std::string& input, int number);

}  // namespace orla::sim
