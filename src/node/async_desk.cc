#include "node/async_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/absl_view.h"
#include "base/random.h"
#include "function/retry_policy.h"
#include "node/async_attempt.h"
#include "node/callback_sender.h"
#include "node/metrics_writer.h"

namespace orla::node {

namespace {

using function::FunctionKey;
using store::AnsweredCall;
using store::CallQueue;
using store::QueuedCall;

// Between two tries to write when the disk does not take it.
constexpr std::chrono::milliseconds kDiskPause{1'000};
// At the end of the desk; what is not written then is made again after the next start.
constexpr std::chrono::milliseconds kLastPause{200};
constexpr int kLastTries = 5;
// Between two looks at what is due while functions are at their limits.
constexpr std::chrono::seconds kLimitPause{1};

// What is tried again; else it is known how the change ended.
bool is_of_the_disk(const absl::Status& status) { return !status.ok() && !absl::IsNotFound(status); }

class Desk final : public AsyncDesk {
 public:
  Desk(AsyncSettings settings, std::unique_ptr<CallQueue> queue, function::Host& host, const base::Clock& clock,
       base::Logger& log)
      : settings_(std::move(settings)),
        host_(host),
        clock_(clock),
        log_(log),
        queue_(std::move(queue)),
        sender_(std::make_unique<CallbackSender>(CallbackSettings{
            settings_.callbacks, settings_.limits.callback_threads, settings_.limits.callback_timeout})),
        thread_([this] { run(); }) {}

  ~Desk() override {
    rest();
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
    // Callbacks on their way are waited for; the others are made after the next start.
    sender_.reset();
    if (!changes_.empty()) work_off(std::exchange(changes_, {}));
  }

  void accept(AsyncCall call, std::function<void(const absl::Status&)> done) override {
    if (!host_.exists(call.key)) {
      done(absl::NotFoundError(fmt::format("error finding function {}: it is not deployed", call.key.text())));
      return;
    }
    if (!call.callback_url.empty())
      if (const absl::Status status = settings_.callbacks.check_url(call.callback_url); !status.ok()) {
        done(status);
        return;
      }
    QueuedCall queued;
    queued.id = call.head.call_id;
    queued.function = call.key.text();
    queued.path = std::move(call.head.path);
    queued.query = std::move(call.head.query);
    queued.headers = std::move(call.head.headers);
    queued.body = std::move(call.body);
    queued.callback = std::move(call.callback_url);
    Change change;
    change.apply = [this, queued = std::move(queued)] {
      const absl::StatusOr<CallQueue::Added> added = queue_->add(queued, clock_.wall_now());
      return added.status();
    };
    change.after = [this, done = std::move(done)](const absl::Status& status) {
      if (status.ok()) {
        const std::lock_guard lock(mutex_);
        ++counts_.accepted;
      }
      done(status);
    };
    post(std::move(change));
  }

  absl::Status cancel(std::string_view call_id) override {
    const std::string id(call_id);
    return wait_for(
        [this, id] {
          const absl::StatusOr<CallQueue::Cancelled> found = queue_->cancel(id);
          if (!found.ok()) return found.status();
          if (*found == CallQueue::Cancelled::kUnknown)
            return absl::NotFoundError(fmt::format("there is no queued or running call {}", id));
          return absl::OkStatus();
        },
        [this, id] {
          if (const auto running = running_.find(id); running != running_.end())
            running->second->cancellation().cancel(function::CancelReason::kCancelled);
        });
  }

  absl::StatusOr<std::vector<store::DeadCall>> dead(const FunctionKey* key) override {
    const std::string function = key == nullptr ? "" : key->text();
    absl::StatusOr<std::vector<store::DeadCall>> calls = absl::InternalError("not asked");
    const absl::Status status = wait_for([this, &function, &calls] {
      calls = queue_->dead(function, settings_.limits.dead_listed);
      return calls.status();
    });
    if (!status.ok()) return status;
    return calls;
  }

  absl::Status replay(std::string_view call_id) override {
    return wait_for([this, id = std::string(call_id)] { return queue_->replay(id, clock_.wall_now()); });
  }
  absl::Status forget(std::string_view call_id) override {
    return wait_for([this, id = std::string(call_id)] { return queue_->forget(id); });
  }

  void rest() override {
    const std::lock_guard lock(mutex_);
    resting_ = true;
  }

  AsyncCounts counts() const override {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  struct Change {
    std::function<absl::Status()> apply;  // on the queue's thread, in a transaction
    std::function<void(const absl::Status&)> after;
    bool until_it_is_done = false;  // tried again when the disk did not take it
  };

  void post(Change change) {
    {
      const std::lock_guard lock(mutex_);
      changes_.push_back(std::move(change));
    }
    wake_.notify_one();
  }

  absl::Status wait_for(std::function<absl::Status()> apply, std::function<void()> after = {}) {
    std::promise<absl::Status> said;
    Change change;
    change.apply = std::move(apply);
    change.after = [&said, after = std::move(after)](const absl::Status& status) {
      if (status.ok() && after) after();
      said.set_value(status);
    };
    post(std::move(change));
    return said.get_future().get();
  }

  void run() {
    tell_lengths();
    std::optional<base::WallTime> due = clock_.wall_now();
    int last_tries = 0;
    for (;;) {
      std::deque<Change> changes;
      {
        std::unique_lock lock(mutex_);
        // It ends after the calls that run, also after those that it has started only just now.
        const auto over = [this] { return stopping_ && in_host_ == 0; };
        const auto something = [&] { return !changes_.empty() || over(); };
        if (!due) {
          wake_.wait(lock, something);
        } else {
          const std::chrono::nanoseconds wait = *due - clock_.wall_now();
          if (wait > std::chrono::nanoseconds::zero())
            wake_.wait_for(lock, std::min<std::chrono::nanoseconds>(wait, std::chrono::minutes(1)), something);
        }
        if (over() && (changes_.empty() || ++last_tries > kLastTries)) return;
        changes.swap(changes_);
      }
      due = work_off(std::move(changes));
    }
  }

  // All changes in one transaction, together with the leases of what is due. Returns when to look again.
  std::optional<base::WallTime> work_off(std::deque<Change> changes) {
    std::vector<absl::Status> applied(changes.size(), absl::OkStatus());
    std::vector<QueuedCall> leased;
    std::vector<AnsweredCall> answered;
    absl::Status status = queue_->begin();
    if (status.ok()) {
      for (std::size_t i = 0; i < changes.size(); ++i) applied[i] = changes[i].apply();
      absl::Status found = lease(leased);
      found.Update(lease_answered(answered));
      if (!found.ok()) log_.error("calls for later: {}", base::message(found));
      status = queue_->commit();
    }
    if (!status.ok()) {
      log_.error("calls for later: {}", base::message(status));
      leased.clear();
      answered.clear();
    }
    tell_lengths();  // who hears that a call was taken finds it counted
    bool room = status.ok();
    for (std::size_t i = 0; i < changes.size(); ++i) {
      Change& change = changes[i];
      const absl::Status& done = status.ok() ? applied[i] : status;
      if (change.until_it_is_done && is_of_the_disk(done)) {
        room = false;
        const std::lock_guard lock(mutex_);
        changes_.push_back(std::move(change));
      } else if (change.after) {
        change.after(done);
      }
    }
    for (QueuedCall& call : leased) start(std::move(call));
    for (AnsweredCall& call : answered) call_back(std::move(call));
    if (!room) {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, stopping_ ? kLastPause : kDiskPause,
                     [this, before = stopping_] { return stopping_ != before; });
      return clock_.wall_now();
    }
    return next_look();
  }

  std::optional<base::WallTime> next_look() {
    const absl::StatusOr<std::optional<base::WallTime>> due = queue_->next_due();
    const base::WallTime now = clock_.wall_now();
    if (!due.ok()) return now + kDiskPause;
    if (!*due) return std::nullopt;
    // What is due and was not leased waits for others to end.
    return **due > now ? **due : now + kLimitPause;
  }

  bool is_stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }
  bool is_resting() const {
    const std::lock_guard lock(mutex_);
    return resting_;
  }

  absl::Status lease(std::vector<QueuedCall>& leased) {
    const base::WallTime now = clock_.wall_now();
    if (is_resting()) return absl::OkStatus();
    if (absl::Status status = queue_->limit_waits(now, function::kLongestWait); !status.ok()) return status;
    std::vector<std::string> functions;
    for (const auto& [function, calls] : queue_->lengths())
      if (calls > running_of(function)) functions.push_back(function);
    // Each time another one is first, so that none starves when there is room for few.
    const auto first = std::upper_bound(functions.begin(), functions.end(), last_leased_);
    std::rotate(functions.begin(), first, functions.end());
    for (const std::string& function : functions) {
      const std::size_t used = running_.size() + leased.size();
      if (used >= settings_.limits.running) break;
      const std::size_t own = running_of(function);
      if (own >= settings_.limits.running_of_function) continue;
      const std::size_t room = std::min(settings_.limits.running - used, settings_.limits.running_of_function - own);
      absl::StatusOr<std::vector<QueuedCall>> some = queue_->lease(function, now, room);
      if (!some.ok()) return some.status();
      if (!some->empty()) last_leased_ = function;
      std::move(some->begin(), some->end(), std::back_inserter(leased));
    }
    return absl::OkStatus();
  }

  // Of the queue's thread, as long as it lives: the sender may be gone after that.
  absl::Status lease_answered(std::vector<AnsweredCall>& answered) {
    const std::size_t most = settings_.limits.callbacks_in_memory;
    if (is_stopping() || calling_back_ >= most || queue_->answered_count() == calling_back_) return absl::OkStatus();
    absl::StatusOr<std::vector<AnsweredCall>> some = queue_->lease_answered(clock_.wall_now(), most - calling_back_);
    if (!some.ok()) return some.status();
    answered = *std::move(some);
    return absl::OkStatus();
  }

  std::size_t running_of(const std::string& function) const {
    const auto found = running_of_.find(function);
    return found == running_of_.end() ? 0 : found->second;
  }

  void start(QueuedCall call) {
    const auto attempt = std::make_shared<AsyncAttempt>(std::move(call), clock_.steady_now() + settings_.call_timeout,
                                                        settings_.limits.answer_bytes);
    const std::string& id = attempt->call().id;
    running_.emplace(id, attempt);
    ++running_of_[attempt->call().function];
    {
      const std::lock_guard lock(mutex_);
      ++in_host_;
    }
    host_.invoke(function::key_of(attempt->call().function), attempt->invocation(attempt),
                 [this, attempt](const function::InvokeResult& end) { ended(attempt, end); });
  }

  // On some thread.
  void ended(const std::shared_ptr<AsyncAttempt>& attempt, const function::InvokeResult& end) {
    AttemptResult result = attempt->result(end);
    if (result.what == AttemptResult::What::kEnded)
      host_.count(function::key_of(attempt->call().function), result.attempt.status, result.seconds);
    if (result.what == AttemptResult::What::kNotMade) rest();
    auto shared = std::make_shared<AttemptResult>(std::move(result));
    auto verdict = std::make_shared<std::optional<Verdict>>();
    Change change;
    change.apply = [this, attempt, shared, verdict] {
      // Once, however often the disk refuses: what was judged is kept.
      if (!*verdict) *verdict = judge_attempt(*attempt, *shared);
      return settle(attempt->call().id, **verdict, *shared);
    };
    change.after = [this, attempt](const absl::Status& /*status*/) { let_go(*attempt); };
    change.until_it_is_done = true;
    // The queue's thread may end only after the change is in.
    const std::lock_guard lock(mutex_);
    changes_.push_back(std::move(change));
    --in_host_;
    wake_.notify_one();
  }

  Verdict judge_attempt(const AsyncAttempt& attempt, const AttemptResult& result) {
    const std::optional<function::FunctionStatus> function =
        host_.find(function::key_of(attempt.call().function), false);
    std::optional<function::RetryOptions> options;
    if (function) options = function::read_retry_options(function->spec.annotations).value_or(function::RetryOptions{});
    const Verdict verdict = judge(attempt.call(), result, options, clock_.wall_now(), random_);
    if (result.what != AttemptResult::What::kEnded) return verdict;
    const std::lock_guard lock(mutex_);
    ++counts_.attempts;
    if (verdict.what == Verdict::What::kAgain) ++counts_.retries;
    return verdict;
  }

  absl::Status settle(const std::string& id, const Verdict& verdict, const AttemptResult& result) {
    const base::WallTime now = clock_.wall_now();
    if (verdict.callback)
      return queue_->answer(
          id,
          {verdict.status, result.headers, result.body, result.seconds, verdict.attempts,
           verdict.what == Verdict::What::kDead ? store::CallAnswer::Then::kDead : store::CallAnswer::Then::kOver,
           verdict.error},
          now);
    switch (verdict.what) {
      case Verdict::What::kOver:
        return queue_->finish(id);
      case Verdict::What::kAgain:
        return queue_->retry(id, verdict.due);
      case Verdict::What::kAsBefore:
        return queue_->give_back(id, now);
      case Verdict::What::kDead:
        return queue_->bury(id, verdict.status, verdict.error, now);
      case Verdict::What::kGone:
        break;
    }
    return absl::OkStatus();
  }

  void call_back(AnsweredCall call) {
    ++calling_back_;
    const std::string id = call.id;
    const std::string function = call.function;
    const std::uint32_t tries = call.tries;
    Callback callback = make_callback(std::move(call));
    callback.done = [this, id, function, tries](const absl::Status& status) {
      const bool again = !status.ok() && !absl::IsInvalidArgument(status) && !absl::IsPermissionDenied(status) &&
                         tries < settings_.limits.callback_attempts;
      if (!status.ok() && !again) {
        log_.warn("call {} of {}: the callback was given up: {}", id, function, base::message(status));
        const std::lock_guard lock(mutex_);
        ++counts_.callbacks_failed;
      }
      Change change;
      change.apply = [this, id, tries, again] {
        const base::WallTime now = clock_.wall_now();
        if (!again) return queue_->called_back(id, now);
        const std::uint32_t doubled = std::min<std::uint32_t>(tries - 1, 16);
        return queue_->call_back_again(id, now + settings_.limits.callback_wait * (std::int64_t{1} << doubled));
      };
      change.after = [this](const absl::Status& /*status*/) { --calling_back_; };
      change.until_it_is_done = true;
      post(std::move(change));
    };
    sender_->send(std::move(callback));
  }

  // On the queue's thread.
  void let_go(const AsyncAttempt& attempt) {
    const auto own = running_of_.find(attempt.call().function);
    if (own != running_of_.end() && --own->second == 0) running_of_.erase(own);
    running_.erase(attempt.call().id);
    // There may be room for another one now.
    const std::lock_guard lock(mutex_);
    if (changes_.empty()) changes_.push_back({[] { return absl::OkStatus(); }, {}, false});
  }

  void tell_lengths() {
    std::map<std::string, std::uint64_t, std::less<>> told;
    told.swap(told_);
    std::uint64_t waiting = 0;
    for (const auto& [function, calls] : queue_->lengths()) {
      waiting += calls;
      const auto before = told.find(function);
      if (before == told.end() || before->second != calls) host_.set_queue_length(function::key_of(function), calls);
      if (before != told.end()) told.erase(before);
      told_.emplace(function, calls);
    }
    for (const auto& [function, calls] : told) host_.set_queue_length(function::key_of(function), 0);
    const std::lock_guard lock(mutex_);
    counts_.waiting = waiting;
    counts_.answered = queue_->answered_count();
    counts_.dead = queue_->dead_count();
  }

  const AsyncSettings settings_;
  function::Host& host_;
  const base::Clock& clock_;
  base::Logger& log_;

  // Of the queue's thread.
  std::unique_ptr<CallQueue> queue_;
  std::map<std::string, std::shared_ptr<AsyncAttempt>> running_;  // by call id
  std::map<std::string, std::size_t> running_of_;                 // by function
  std::size_t calling_back_ = 0;                                  // handed to the sender
  std::map<std::string, std::uint64_t, std::less<>> told_;
  std::string last_leased_;
  base::SystemRandom random_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;  // the queue's thread
  std::deque<Change> changes_;
  std::size_t in_host_ = 0;
  bool resting_ = false;
  bool stopping_ = false;
  AsyncCounts counts_;

  std::unique_ptr<CallbackSender> sender_;
  std::thread thread_;
};

}  // namespace

std::string async_metrics(const AsyncCounts& counts) {
  MetricsWriter out;
  out.number("orla_async_waiting", "gauge", "Calls for later that are queued or run.", counts.waiting);
  out.number("orla_async_callbacks_waiting", "gauge", "Calls for later that are over but for their callback.",
             counts.answered);
  out.number("orla_async_dead", "gauge", "Calls for later that failed for good.", counts.dead);
  out.number("orla_async_accepted_total", "counter", "Calls for later that were acknowledged.", counts.accepted);
  out.number("orla_async_attempts_total", "counter", "Attempts that ended with a status.", counts.attempts);
  out.number("orla_async_retries_total", "counter", "Attempts that another one follows.", counts.retries);
  out.number("orla_async_callbacks_failed_total", "counter", "Callbacks that were given up.", counts.callbacks_failed);
  return out.take();
}

absl::StatusOr<std::unique_ptr<AsyncDesk>> AsyncDesk::open(AsyncSettings settings, function::Host& host,
                                                           const base::Clock& clock, base::Logger& log) {
  absl::StatusOr<std::unique_ptr<CallQueue>> queue =
      CallQueue::open(settings.path, settings.fsync, settings.limits.queue);
  if (absl::IsDataLoss(queue.status())) {
    // The node does other things, too, and takes new calls.
    log.error("the queue of calls for later is damaged; calls in it are lost, and it is kept beside a new one: {}",
              base::message(queue.status()));
    if (absl::Status status = store::set_aside(settings.path); !status.ok()) return status;
    queue = CallQueue::open(settings.path, settings.fsync, settings.limits.queue);
  }
  if (!queue.ok()) return queue.status();
  return std::make_unique<Desk>(std::move(settings), *std::move(queue), host, clock, log);
}

}  // namespace orla::node
