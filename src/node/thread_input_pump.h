// The real InputPump: one thread per input reads, paces and hands batches to the loop.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "ingest/input.h"
#include "node/input_pump.h"

namespace orla::node {

class ThreadInputPump final : public InputPump {
 public:
  // Loop and clock outlive the pump. make_input is called on the inputs' threads.
  ThreadInputPump(base::Loop& loop, const base::Clock& clock, ingest::MakeInput make_input = ingest::make_input);
  // Stops and joins. What is still posted on the loop does nothing.
  ~ThreadInputPump() override;

  void set_events(Events events) override;
  void start(std::size_t input, const model::InputSpec& spec, model::Position from) override;
  void consumed(std::size_t input) override;
  model::Time paced_now(std::size_t input) const override;
  double progress(std::size_t input) const override;
  void stop() override;

 private:
  struct Reader;
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared, const std::shared_ptr<Reader>& reader);

  base::Loop& loop_;
  const base::Clock& clock_;
  std::shared_ptr<Shared> shared_;                // with the readers' threads and their tasks on the loop
  std::vector<std::shared_ptr<Reader>> readers_;  // by input; with their threads; null: never started
};

}  // namespace orla::node
