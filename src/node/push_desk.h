// The pushes of one edge that are in its engine and not durable yet: each waits here for the commit that holds it
// (disk) or for the cloud's acknowledgement of the chunk that holds it (memory). All on the node's loop.
//
// Whoever has waited for `timeout` is told that the outcome is unknown; what it pushed goes on, and a resend with the
// same producer and sequence waits for it again.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/chunk.h"
#include "node/push.h"
#include "node/role.h"
#include "node/status.h"

namespace orla::node {

class PushDesk {
 public:
  struct Limits {
    std::size_t waiting_bytes = 0;
    std::chrono::milliseconds commit_delay{};  // from the first push that no commit holds to the commit
    std::chrono::milliseconds timeout{};
  };
  // `commit` runs on the loop when the delay is over. `loop` and `clock` outlive the desk.
  PushDesk(base::Loop& loop, const base::Clock& clock, Limits limits, std::function<void()> commit);
  // Those still waiting are told that the outcome is unknown.
  ~PushDesk();
  PushDesk(const PushDesk&) = delete;
  PushDesk& operator=(const PushDesk&) = delete;

  bool has_room(std::size_t bytes) const { return waiting_bytes_ + bytes <= limits_.waiting_bytes; }
  const Limits& limits() const { return limits_; }

  // It is in the engine; the next commit takes it. `outcome` is what it is told once it is durable.
  void add(const Push& push, PushOutcome outcome, PushDone done);
  // A resend of something in the engine: told kDuplicate once that is durable, at once if it is.
  void add_duplicate(const Push& push, PushDone done);
  void count_refusal() { ++refused_; }

  // Whether something waits that no commit has taken.
  bool untaken() const;
  // A commit takes all there is; the last of its chunks, or of the chunks before, is `chunk`.
  void taken(model::Sequence chunk);
  // Disk: what was taken is there.
  void committed() { acknowledged(UINT64_MAX); }
  // Memory: the cloud has the chunks up to this one.
  void acknowledged(model::Sequence through);
  // Memory: the rows of this chunk will never be there (unless they are already). Nobody can tell yet; what is sent
  // again of it waits until the cloud has been told.
  void lost(model::Sequence chunk, const std::string& why);
  // What waits is gone, or nobody can tell any more.
  void give_up(const std::string& why);
  // Now and then.
  void tick();
  void fill(PushStatus& status) const;

 private:
  struct Waiter {
    PushOutcome outcome;
    PushDone done;  // null once it was told
    base::SteadyTime deadline;
  };
  struct Entry {
    std::size_t bytes = 0;
    std::string producer;
    std::uint64_t sequence = 0;
    base::SteadyTime since;
    std::optional<model::Sequence> chunk;  // once taken
    bool lost = false;                     // its samples will not be kept
    std::vector<Waiter> waiters;           // the sender, and those that sent it again meanwhile
  };
  void arm();
  void tell_unknown(std::deque<Entry> entries, const std::string& why);
  void tell(Waiter& waiter, const PushOutcome& outcome);

  base::Loop& loop_;
  const base::Clock& clock_;
  const Limits limits_;
  const std::function<void()> commit_;
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // with the timer on the loop, which may outlive the desk
  bool armed_ = false;
  std::deque<Entry> entries_;  // in order of arrival
  std::size_t waiting_bytes_ = 0;
  base::SteadyTime next_deadline_ = base::SteadyTime::max();
  std::uint64_t kept_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t unknown_ = 0;
  std::chrono::nanoseconds wait_sum_{};
  std::chrono::nanoseconds wait_longest_{};
};

}  // namespace orla::node
