// One deployed function: its replicas, the calls that are held, and what is counted.
//
// Under one mutex it is only decided; what follows from it (starting, ending, running, answering) is collected in a
// Todo and done after the mutex was given back. Files: host_function.cc (calls), host_replicas.cc (replicas and
// scaling).
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "function/host_call.h"
#include "function/host_context.h"
#include "function/host_counts.h"
#include "function/host_load.h"
#include "function/replica_set.h"
#include "function/scale_policy.h"

namespace orla::function {

inline constexpr std::uint32_t kTries = 3;                      // replicas that a call is given to while they are dead
inline constexpr std::chrono::milliseconds kLookInterval{500};  // between two looks at a function with load
inline constexpr std::chrono::seconds kModuleIdle{30};          // without replicas; then it gives back what it can
inline constexpr std::chrono::seconds kStopGrace{10};           // for a replica without calls to end by itself

// Thread-safe. Owned by a shared_ptr, which calls and jobs share with the host until they are done.
class HostedFunction final : public HostTimer::Entry {
 public:
  HostedFunction(HostContext& context, FunctionKey key, base::WallTime created);
  ~HostedFunction() override;

  const FunctionKey key;
  const base::WallTime created;
  LogBook log;
  HostCounts counts;

  // --- Deployments; one at a time.
  enum class Wanted : std::uint8_t { kNew, kRestored };
  // From now on replicas are of `generation`; those of an earlier one go when as many of it are ready. `replicas` is
  // what was wanted before (kRestored).
  void install(std::shared_ptr<Generation> generation, Wanted how, std::uint32_t replicas);
  // No new calls and replicas; what is in progress finishes.
  void close();
  std::shared_ptr<Generation> generation() const;
  std::uint32_t scale(std::uint32_t replicas);
  // False: nothing has changed.
  bool alert(bool firing);
  void set_queue_length(std::uint64_t waiting);
  std::uint32_t wanted() const;

  // --- Calls.
  void invoke(std::shared_ptr<HostCall> call);
  // On a thread for calls.
  void run(HostCall& call);
  // It was cancelled while it may be held.
  void withdraw(const std::shared_ptr<HostCall>& call);
  // There is a place for a running call again.
  void pump();
  bool calls_are_long() const { return calls_are_long_.load(std::memory_order_relaxed); }
  void saw_long_call() { note_length(true); }

  // --- Looks from outside.
  void expire() override;  // the timer's
  // Finds replicas that have died.
  void check_replicas();
  FunctionStatus status(bool with_usage) const;
  FunctionCounts read_counts() const;

 private:
  struct Start {
    std::shared_ptr<Generation> generation;
    std::string name;
    Cancellation cancellation;
    bool unwanted = false;
  };
  struct Todo {
    std::vector<std::shared_ptr<HostCall>> run;
    std::vector<std::pair<std::shared_ptr<HostCall>, InvokeResult>> end;
    std::vector<std::shared_ptr<Start>> start;
    std::vector<std::shared_ptr<Start>> cancel;
    std::vector<std::shared_ptr<Replica>> retire;
    std::vector<std::pair<std::string, std::string>> say;  // lines for the log
    std::shared_ptr<Generation> idle;
  };
  std::shared_ptr<HostedFunction> self() { return std::static_pointer_cast<HostedFunction>(shared_from_this()); }
  void carry_out(Todo& todo);
  void finish(const std::shared_ptr<HostCall>& call, const InvokeResult& result);

  // All below: under mutex_.
  void changed(base::SteadyTime now, std::uint32_t begun);
  std::shared_ptr<Replica> take_place(Todo& todo);
  bool hold(const std::shared_ptr<HostCall>& call, base::SteadyTime now, Todo& todo);
  void release_held(base::SteadyTime now, Todo& todo);
  void unlink(HostCall& call);
  void end_held(const InvokeResult& result, Todo& todo);
  InvokeResult no_endpoints(base::SteadyTime now) const;
  bool retry(const std::shared_ptr<HostCall>& call, base::SteadyTime now, Todo& todo);
  void reconcile(base::SteadyTime now, Todo& todo);
  void start_missing(std::uint32_t missing, base::SteadyTime now, Todo& todo);
  enum class Failed : std::uint8_t { kAtStart, kWhenReady };
  void start_failed(std::string reason, Failed how, base::SteadyTime now, Todo& todo);
  void let_go(const std::shared_ptr<Replica>& replica, Todo& todo);
  void retire_when_empty(const std::shared_ptr<Replica>& replica, Todo& todo);
  void evict(const std::shared_ptr<Replica>& replica, base::SteadyTime now, Todo& todo);
  void look(base::SteadyTime now, Todo& todo);
  void look_at(base::SteadyTime due);
  base::SteadyTime next_look(base::SteadyTime now) const;
  std::uint32_t least_wanted() const;

  // On a thread for jobs.
  void start(const std::shared_ptr<Start>& start);
  void retire(const std::shared_ptr<Replica>& replica);
  void note_length(bool was_long);

  HostContext& context_;
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<bool> calls_are_long_{true};  // none was seen yet
  std::atomic<std::uint32_t> short_calls_{0};

  mutable std::mutex mutex_;  // guards all below
  std::shared_ptr<Generation> generation_;
  bool closed_ = false;
  std::uint32_t wanted_ = 0;
  ReplicaSet ready_;
  std::vector<std::shared_ptr<Start>> starting_;
  std::uint32_t failures_ = 0;  // of starts, one after the other
  std::string last_failure_;
  base::SteadyTime not_before_{};  // the next start
  std::uint32_t running_ = 0;
  std::list<std::shared_ptr<HostCall>> held_;  // in order
  bool starved_ = false;                       // in the context's list
  std::uint64_t queue_ = 0;
  base::SteadyTime active_{};  // when a call ended or people changed something
  bool module_idle_ = false;
  LoadWindow load_;
  ScaleMemory memory_;
  static constexpr base::SteadyTime kNever = base::SteadyTime::max();
  base::SteadyTime look_due_ = kNever;
};

}  // namespace orla::function
