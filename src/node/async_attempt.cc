#include "node/async_attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "base/absl_view.h"
#include "base/version.h"
#include "node/gateway_call.h"

namespace orla::node {

namespace {

constexpr std::string_view kInternal = "X-OpenFaaS-Internal";

function::CallHead head_of(const store::QueuedCall& call, base::SteadyTime deadline) {
  function::CallHead head;
  head.path = call.path;
  head.query = call.query;
  head.headers = call.headers;
  head.host = std::string(function::find_header(call.headers, "X-Forwarded-Host").value_or(""));
  head.call_id = call.id;
  head.content_length = call.body.size();
  head.deadline = deadline;
  return head;
}

// Of the response's connection, or said anew by the callback.
bool is_left_out(std::string_view name) {
  for (const std::string_view left_out :
       {"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "TE", "Trailer", "Upgrade",
        "Content-Length", "Host", "User-Agent", "X-Call-Id", "X-Duration-Seconds", "X-Function-Status",
        "X-Function-Name", "X-Retry", "X-Retry-Max"})
    if (absl::EqualsIgnoreCase(base::absl_view(name), base::absl_view(left_out))) return true;
  return false;
}

}  // namespace

absl::StatusOr<std::size_t> AsyncAttempt::Body::read(char* to, std::size_t room) {
  const std::size_t size = std::min(room, bytes_.size() - read_);
  std::memcpy(to, bytes_.data() + read_, size);
  read_ += size;
  return size;
}

absl::Status AsyncAttempt::Answer::begin(int began, function::Headers with, std::optional<std::uint64_t> /*length*/) {
  status = began;
  headers = std::move(with);
  return absl::OkStatus();
}

absl::Status AsyncAttempt::Answer::write(std::string_view piece) {
  if (most_ == 0 || too_long) return absl::OkStatus();
  too_long = piece.size() > most_ - body.size();
  if (too_long) {
    body = {};
  } else {
    body.append(piece);
  }
  return absl::OkStatus();
}

AsyncAttempt::AsyncAttempt(store::QueuedCall call, base::SteadyTime deadline, std::size_t answer_bytes)
    : call_(std::move(call)),
      body_(call_.body),
      answer_(call_.callback.empty() ? 0 : answer_bytes),
      invocation_(head_of(call_, deadline), body_, answer_) {}

AttemptResult AsyncAttempt::result(const function::InvokeResult& end) {
  using function::CancelReason;
  using function::InvokeEnd;
  AttemptResult result;
  result.seconds = end.seconds;
  result.message = end.message;
  result.attempt.number = call_.attempts;
  const CancelReason reason = cancellation().reason();
  if (reason == CancelReason::kCancelled) {
    result.what = AttemptResult::What::kCancelled;
    return result;
  }
  if (end.end == InvokeEnd::kDraining || reason == CancelReason::kDraining) {
    result.what = AttemptResult::What::kNotMade;
    return result;
  }
  if (end.end == InvokeEnd::kAnswered) {
    result.attempt.status = answer_.status;
    result.headers = std::move(answer_.headers);
    result.body = std::move(answer_.body);
    if (answer_.too_long) {
      result.headers.clear();
      result.body = result.message = "the response is too long to be called back\n";
    }
  } else if (end.end == InvokeEnd::kBroken) {
    result.attempt.status = 503;
    result.attempt.internal = true;
    result.body = end.message + "\n";
  } else {
    node::Answer answer = answer_of(end, call_.function);
    result.attempt.status = answer.status;
    result.headers = std::move(answer.headers);
    result.body = std::move(answer.body);
    result.attempt.internal = end.end == InvokeEnd::kCancelled;
  }
  if (function::find_header(result.headers, kInternal)) result.attempt.internal = true;
  if (const auto after = function::find_header(result.headers, "Retry-After"))
    result.attempt.retry_after = std::string(*after);
  if (result.message.empty() && result.attempt.status >= 300)
    result.message = fmt::format("the function answered {}", result.attempt.status);
  return result;
}

Verdict judge(const store::QueuedCall& call, const AttemptResult& result,
              const std::optional<function::RetryOptions>& options, base::WallTime now, base::Random& random) {
  Verdict verdict;
  verdict.status = result.attempt.status;
  verdict.error = result.message;
  if (result.what == AttemptResult::What::kCancelled) {
    verdict.what = Verdict::What::kGone;
    return verdict;
  }
  if (result.what == AttemptResult::What::kNotMade) {
    verdict.what = Verdict::What::kAsBefore;
    return verdict;
  }
  const function::RetryOptions retry = options.value_or(function::RetryOptions{});
  verdict.attempts = retry.attempts;
  if (verdict.status >= 300 && function::is_retried(retry, result.attempt)) {
    verdict.what = Verdict::What::kAgain;
    verdict.due = now + function::wait_after(retry, result.attempt, now, random);
    return verdict;
  }
  // Dead: its function is gone, or the last attempt ended like those that are tried again.
  function::Attempt first = result.attempt;
  first.number = 0;
  const bool in_vain = verdict.status >= 300 && (!options || function::is_retried(retry, first));
  verdict.what = in_vain ? Verdict::What::kDead : Verdict::What::kOver;
  verdict.callback = !call.callback.empty();
  return verdict;
}

Callback make_callback(store::AnsweredCall call) {
  Callback callback;
  callback.url = std::move(call.callback);
  callback.body = std::move(call.answer.body);
  for (auto& header : call.answer.headers)
    if (!is_left_out(header.first)) callback.headers.push_back(std::move(header));
  callback.headers.emplace_back("User-Agent", fmt::format("orla/{}", base::Version()));
  callback.headers.emplace_back("X-Call-Id", std::move(call.id));
  callback.headers.emplace_back("X-Duration-Seconds", fmt::format("{:.6f}", call.answer.seconds));
  callback.headers.emplace_back("X-Function-Status", fmt::format("{}", call.answer.status));
  callback.headers.emplace_back("X-Function-Name", std::move(call.function));
  callback.headers.emplace_back("X-Retry", fmt::format("{}", std::max(call.attempts, 1u) - 1));
  callback.headers.emplace_back("X-Retry-Max", fmt::format("{}", call.answer.most_attempts));
  return callback;
}

}  // namespace orla::node
