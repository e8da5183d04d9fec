// One attempt of a queued call: what the function reads, what it answers, and what that means.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/random.h"
#include "function/invocation.h"
#include "function/retry_policy.h"
#include "node/callback_sender.h"
#include "store/call_queue.h"

namespace orla::node {

// How an attempt ended, as a callback tells it.
struct AttemptResult {
  enum class What : std::uint8_t {
    kEnded,      // with a status
    kNotMade,    // the node goes down, or it was ended by that: the call waits as before
    kCancelled,  // by DELETE: nobody wants to hear of it
  };
  What what = What::kEnded;
  function::Attempt attempt;
  function::Headers headers;
  std::string body;
  std::string message;  // for the dead letter
  double seconds = 0;
};

// What becomes of a call after an attempt.
struct Verdict {
  enum class What : std::uint8_t { kOver, kAgain, kAsBefore, kDead, kGone } what = What::kOver;
  base::WallTime due{};
  int status = 0;
  std::string error;
  bool callback = false;  // is to be made first
  std::uint32_t attempts = 1;
};
// `options`: of its function; none when that is gone.
Verdict judge(const store::QueuedCall& call, const AttemptResult& result,
              const std::optional<function::RetryOptions>& options, base::WallTime now, base::Random& random);

// Kept alive by its desk and by the host until it has ended.
class AsyncAttempt {
 public:
  // `answer_bytes`: of a response's body at most; none is kept when there is no callback.
  AsyncAttempt(store::QueuedCall call, base::SteadyTime deadline, std::size_t answer_bytes);
  AsyncAttempt(const AsyncAttempt&) = delete;
  AsyncAttempt& operator=(const AsyncAttempt&) = delete;

  const store::QueuedCall& call() const { return call_; }
  // Shares the life of `self`, which is this.
  std::shared_ptr<function::Invocation> invocation(const std::shared_ptr<AsyncAttempt>& self) {
    return {self, &invocation_};
  }
  function::Cancellation& cancellation() { return invocation_.cancellation; }
  // After the host has said how it ended.
  AttemptResult result(const function::InvokeResult& end);

 private:
  class Body final : public function::RequestBody {
   public:
    explicit Body(std::string_view bytes) : bytes_(bytes) {}
    std::optional<std::string_view> whole() const override { return bytes_; }
    absl::StatusOr<std::size_t> read(char* to, std::size_t room) override;

   private:
    const std::string_view bytes_;
    std::size_t read_ = 0;
  };
  class Answer final : public function::Response {
   public:
    explicit Answer(std::size_t most) : most_(most) {}
    absl::Status begin(int status, function::Headers headers, std::optional<std::uint64_t> length) override;
    absl::Status write(std::string_view piece) override;

    int status = 0;
    function::Headers headers;
    std::string body;
    bool too_long = false;

   private:
    const std::size_t most_;
  };

  const store::QueuedCall call_;
  Body body_;
  Answer answer_;
  function::Invocation invocation_;
};

// What is sent to the call's callback.
Callback make_callback(store::AnsweredCall call);

}  // namespace orla::node
