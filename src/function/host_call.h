// One call between invoke() and its `done`.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include "function/executor.h"
#include "function/host_timer.h"
#include "function/invocation.h"
#include "function/replica_set.h"

namespace orla::function {

class HostedFunction;

// Held by whoever has to bring it to its end: the function's list of held calls, the executor, the thread that runs it.
struct HostCall final : Executor::Task, HostTimer::Entry {
  void run() override;
  bool long_expected() const override;
  void runs_long() override;
  // Its deadline.
  void expire() override { invocation->cancellation.cancel(CancelReason::kTimeout); }

  std::shared_ptr<HostedFunction> function;
  std::shared_ptr<Invocation> invocation;
  InvokeDone done;
  std::shared_ptr<Replica> replica;  // that has a place for it
  std::uint32_t tries = 0;           // replicas that turned out to be dead
  // While it is held; guarded by the function's mutex.
  bool held = false;
  std::list<std::shared_ptr<HostCall>>::iterator place;
  // Ends it when it is cancelled while it is held.
  std::optional<Cancellation::Subscription> subscription;
};

}  // namespace orla::function
