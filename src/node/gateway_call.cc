#include "node/gateway_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "base/absl_view.h"

namespace orla::node {

namespace {

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && absl::EqualsIgnoreCase(base::absl_view(a), base::absl_view(b));
}

constexpr std::string_view kInternal = "X-OpenFaaS-Internal";

// For one line of a body or a header.
std::string line(std::string_view text) {
  std::string out(text.substr(0, 2000));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return out + "\n";
}

}  // namespace

std::string make_call_id(base::Random& random) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::uint64_t high = (random.next() & ~0xf000ull) | 0x4000ull;
  std::uint64_t low = (random.next() & ~(3ull << 62)) | (2ull << 62);
  std::string id(36, '-');
  for (int i = 35; i >= 0; --i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) continue;
    std::uint64_t& part = i > 18 ? low : high;
    id[static_cast<std::size_t>(i)] = kDigits[part & 15];
    part >>= 4;
  }
  return id;
}

function::CallHead make_call(RequestHead& request, std::string_view rest, const CallFacts& facts,
                             std::string_view user_agent, base::Random& random) {
  function::CallHead call;
  call.method = request.method;
  call.path = rest;
  call.query = std::move(request.query);
  call.host = request.host;
  call.content_length = request.chunked ? std::nullopt : std::optional(request.content_length.value_or(0));
  call.deadline = facts.deadline;
  call.upgrade = request.upgrade;
  call.headers = std::move(request.headers);
  call.headers.reserve(call.headers.size() + 5);
  bool agent = false;
  bool forwarded_host = false;
  bool forwarded_for = false;
  bool start_time = false;
  for (auto& [name, value] : call.headers) {
    switch (name.size()) {
      case 9:
        if (call.call_id.empty() && same(name, "X-Call-Id")) call.call_id = value;
        break;
      case 10:
        agent = agent || same(name, "User-Agent");
        break;
      case 12:
        if (same(name, "X-Start-Time")) {
          value = facts.start_time;
          start_time = true;
        }
        break;
      case 15:
        forwarded_for = forwarded_for || same(name, "X-Forwarded-For");
        break;
      case 16:
        forwarded_host = forwarded_host || same(name, "X-Forwarded-Host");
        break;
      default:
        break;
    }
  }
  if (call.call_id.empty()) {
    call.call_id = make_call_id(random);
    std::erase_if(call.headers, [](const auto& header) { return same(header.first, "X-Call-Id"); });
    call.headers.emplace_back("X-Call-Id", call.call_id);
  }
  if (!start_time) call.headers.emplace_back("X-Start-Time", facts.start_time);
  if (!forwarded_host && !call.host.empty()) call.headers.emplace_back("X-Forwarded-Host", call.host);
  if (!forwarded_for) call.headers.emplace_back("X-Forwarded-For", facts.peer);
  if (!agent) call.headers.emplace_back("User-Agent", user_agent);
  return call;
}

Answer answer_of(const function::InvokeResult& result, std::string_view function_name) {
  using function::InvokeEnd;
  Answer answer;
  const auto retry = [&] {
    answer.headers.emplace_back("Retry-After",
                                fmt::format("{}", std::max<std::int64_t>(1, result.retry_after.count())));
  };
  switch (result.end) {
    case InvokeEnd::kNotFound:
      answer.status = 404;
      answer.body = line(fmt::format("error finding function {}: {}", function_name,
                                     result.message.empty() ? "it is not deployed" : result.message));
      break;
    case InvokeEnd::kNoEndpoints:
      answer.status = 503;
      answer.body = line(fmt::format("No endpoints available for: {}.{}{}", function_name,
                                     result.message.empty() ? "" : " ", result.message));
      answer.headers.emplace_back(kInternal, "proxy");
      retry();
      break;
    case InvokeEnd::kOverloaded:
      answer.status = 429;
      answer.body = line(result.message);
      retry();
      break;
    case InvokeEnd::kDraining:
      answer.status = 503;
      answer.body = line("this node is going down");
      answer.close = true;
      retry();
      break;
    case InvokeEnd::kCantReach:
      answer.status = 500;
      answer.body = line(fmt::format("Can't reach service for: {}.{}{}", function_name,
                                     result.message.empty() ? "" : " ", result.message));
      answer.headers.emplace_back(kInternal, "proxy");
      break;
    case InvokeEnd::kTimedOut:
      if (!result.from_runtime) {  // the gateway's own patience: upstream_timeout
        answer.status = 502;
        break;
      }
      answer.status = 504;
      answer.body = line(result.message);
      answer.headers.emplace_back(kInternal, "of-watchdog");
      break;
    case InvokeEnd::kCancelled:
      answer.status = 503;
      answer.body = line("the call was cancelled");
      break;
    case InvokeEnd::kAnswered:
    case InvokeEnd::kBroken:
    case InvokeEnd::kFailed:
      answer.status = 500;
      answer.body = line(result.message.empty() ? "the function gave no response" : result.message);
      if (result.from_runtime) answer.headers.emplace_back(kInternal, "of-watchdog");
      break;
  }
  if (result.from_runtime) answer.headers.emplace_back("X-Duration-Seconds", fmt::format("{:.6f}", result.seconds));
  return answer;
}

}  // namespace orla::node
