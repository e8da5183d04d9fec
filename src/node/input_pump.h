// Brings an edge's inputs to its loop, batch by batch.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/batch.h"
#include "model/fleet.h"

namespace orla::node {

// All methods are called on the node's loop, and callbacks run there. Delivers at most kMaxOutstanding batches of an
// input before the first of them is reported consumed, so a slow node slows its inputs.
class InputPump {
 public:
  struct Events {
    // `paced_now` is the input's own clock in event time (kMinTime when speed is 0), at the moment of delivery. The
    // batch is the pump's: its memory is filled again.
    std::function<void(std::size_t input, const model::InputBatch& batch, model::Time paced_now)> batch;
    // The input cannot go on; nothing of it follows.
    std::function<void(std::size_t input, absl::Status why)> failed;
  };
  static constexpr std::size_t kMaxOutstanding = 3;

  virtual ~InputPump() = default;
  virtual void set_events(Events events) = 0;
  // `input` is the caller's number of it. Reads from `from` on.
  virtual void start(std::size_t input, const model::InputSpec& spec, model::Position from) = 0;
  virtual void consumed(std::size_t input) = 0;
  // The input's own clock now, in event time; kMinTime when its speed is 0 or it has not begun.
  virtual model::Time paced_now(std::size_t input) const = 0;
  // 0..1, negative when unknown.
  virtual double progress(std::size_t input) const = 0;
  // No input delivers anything from now on.
  virtual void stop() = 0;
};

}  // namespace orla::node
