#include "node/gateway_start.h"

#include <fmt/format.h>

#include <utility>

#include "absl/strings/match.h"
#include "base/absl_view.h"
#include "node/gateway_system.h"

namespace orla::node {

namespace {

Answer text(int status, std::string body) { return {status, "text/plain; charset=utf-8", {}, body + "\n", false}; }

Answer going_down() {
  Answer answer = text(503, "this node is going down");
  answer.headers.emplace_back("Retry-After", "1");
  answer.close = true;
  return answer;
}

std::optional<Answer> check_guard(GatewayCore& core, const RequestHead& request) {
  if (core.auth == nullptr) return std::nullopt;
  const std::optional<std::string_view> given = function::find_header(request.headers, "Authorization");
  if (core.auth->allows(given.value_or(""))) return std::nullopt;
  Answer answer = text(401, "invalid credentials");
  answer.headers.emplace_back("WWW-Authenticate", "Basic realm=\"Restricted\"");
  return answer;
}

bool is_callback_url(std::string_view url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase(base::absl_view(url), base::absl_view(scheme))) continue;
    const std::string_view rest = url.substr(scheme.size());
    return !rest.empty() && rest.front() != '/' && rest.front() != ':' && rest.find(' ') == std::string_view::npos;
  }
  return false;
}

// A call in the host: kept alive by itself until it has ended.
struct HostCall {
  std::shared_ptr<GatewayCore> core;
  std::shared_ptr<Exchange> exchange;
  function::FunctionKey key;
  base::SteadyTime began{};
};

void invoke(const std::shared_ptr<GatewayCore>& core, const std::shared_ptr<Exchange>& exchange, const Route& route) {
  auto* call = new HostCall{core, exchange, function::key_of(route.name), core->clock.steady_now()};
  // A captured pointer needs no allocation in the std::function; `done` runs once.
  core->host.invoke(call->key, std::shared_ptr<function::Invocation>(exchange, &exchange->invocation),
                    [call](const function::InvokeResult& result) {
                      const std::unique_ptr<HostCall> owned(call);
                      const int status = call->exchange->finish(result, call->key.text());
                      const std::chrono::duration<double> seconds = call->core->clock.steady_now() - call->began;
                      if (result.end != function::InvokeEnd::kNotFound) {
                        call->core->host.count(call->key, status, seconds.count());
                      }
                    });
}

void enqueue(const std::shared_ptr<GatewayCore>& core, const std::shared_ptr<Exchange>& exchange, const Route& route) {
  AsyncCall call;
  call.key = function::key_of(route.name);
  call.body = std::move(exchange->body);
  call.callback_url = function::find_header(exchange->invocation.head.headers, "X-Callback-Url").value_or("");
  call.head = exchange->invocation.head;
  call.head.upgrade.clear();
  core->async->accept(std::move(call), [exchange](const absl::Status& status) {
    const std::string message = base::message(status);
    switch (status.code()) {
      case absl::StatusCode::kOk:
        return exchange->finish(Answer{202, "", {}, "", false});
      case absl::StatusCode::kInvalidArgument:
        return exchange->finish(text(400, message));
      case absl::StatusCode::kNotFound:
        return exchange->finish(text(404, message));
      case absl::StatusCode::kResourceExhausted: {
        Answer full = text(429, message);
        full.headers.emplace_back("Retry-After", "1");
        return exchange->finish(std::move(full));
      }
      default:
        return exchange->finish(text(500, fmt::format("Error queuing request: {}", message)));
    }
  });
}

void take_back(const std::shared_ptr<GatewayCore>& core, const std::shared_ptr<Exchange>& exchange,
               const Route& route) {
  core->work([core, exchange, id = std::string(route.name)] {
    const absl::Status status = core->async->cancel(id);
    if (status.ok()) return exchange->finish(Answer{202, "", {}, "", false});
    exchange->finish(text(absl::IsNotFound(status) ? 404 : 500, base::message(status)));
  });
}

}  // namespace

RequestPlan plan_request(GatewayCore& core, const RequestHead& request) {
  RequestPlan plan;
  plan.route = route(request.method, request.path);
  const bool refusing = core.phase == Phase::kRefusing;
  switch (plan.route.kind) {
    case Route::Kind::kFunction: {
      plan.body_limit = core.settings.limits.body_bytes;
      if (refusing) {
        plan.answer = going_down();
        break;
      }
      // Of others the host says so, without a second look.
      const bool large =
          request.chunked || request.expects_continue || request.content_length.value_or(0) > kWholeBodyBytes;
      const function::FunctionKey key = large ? function::key_of(plan.route.name) : function::FunctionKey();
      if (large && !core.host.exists(key)) {
        plan.answer = text(404, fmt::format("error finding function {}: it is not deployed", key.text()));
      }
      break;
    }
    case Route::Kind::kAsync:
      plan.body_limit = core.settings.limits.async_body_bytes;
      plan.whole = true;
      if (refusing) {
        plan.answer = going_down();
      } else if (core.async == nullptr) {
        plan.answer = text(501, "this node has no queue for calls that are made later");
      } else if (request.method == "POST") {
        const std::optional<std::string_view> url = function::find_header(request.headers, "X-Callback-Url");
        if (url && !url->empty() && !is_callback_url(*url)) {
          plan.answer = text(400, "X-Callback-Url: expected http://HOST/... or https://HOST/...");
        } else if (const function::FunctionKey key = function::key_of(plan.route.name); !core.host.exists(key)) {
          plan.answer = text(404, fmt::format("error finding function {}: it is not deployed", key.text()));
        }
      }
      break;
    case Route::Kind::kSystem:
      plan.body_limit = core.settings.limits.system_body_bytes;
      plan.whole = true;
      plan.answer = check_guard(core, request);
      if (!plan.answer && refusing) plan.answer = going_down();
      break;
    case Route::Kind::kUi:
      plan.answer = check_guard(core, request);
      if (plan.answer) break;
      if (plan.route.rest == "/ui") {
        plan.answer = Answer{307, "", {{"Location", "/ui/"}}, "", false};
      } else {
        plan.answer = ui_page();
      }
      break;
    case Route::Kind::kRoot:
      plan.answer = Answer{307, "", {{"Location", "/ui/"}}, "", false};
      break;
    case Route::Kind::kHealth:
      plan.answer = core.phase == Phase::kServing ? text(200, "OK") : text(503, "this node is going down");
      break;
    case Route::Kind::kNothing:
      if (plan.route.guarded) plan.answer = check_guard(core, request);
      if (!plan.answer) plan.answer = text(404, "there is nothing here");
      break;
    case Route::Kind::kMethod:
      if (plan.route.guarded) plan.answer = check_guard(core, request);
      if (plan.answer) break;
      plan.answer = text(405, fmt::format("possible methods: {}", plan.route.rest));
      plan.answer->headers.emplace_back("Allow", plan.route.rest);
      break;
    case Route::Kind::kBadName:
      plan.answer = text(400, "a function's name is letters, digits, '-', '_' and '.', 127 of them at most");
      plan.answer->headers.emplace_back("X-OpenFaaS-Internal", "proxy");
      break;
  }
  const bool of_call = plan.route.kind == Route::Kind::kFunction || plan.route.kind == Route::Kind::kAsync;
  if (plan.answer && of_call) {
    if (const auto id = function::find_header(request.headers, "X-Call-Id"); id && !id->empty()) {
      plan.answer->headers.emplace_back("X-Call-Id", *id);
    }
  }
  return plan;
}

std::shared_ptr<Exchange> make_exchange(const std::shared_ptr<GatewayCore>& core, std::shared_ptr<Wire> wire,
                                        const StartedRequest& started, base::Random& random) {
  ExchangeFacts facts;
  facts.http11 = started.request.http11;
  facts.keep_alive = started.keep_alive;
  facts.is_head = started.request.method == "HEAD";
  facts.began = started.began;
  facts.start_time = started.facts.start_time;
  function::CallHead head;
  head.deadline = started.facts.deadline;
  if (started.route.kind != Route::Kind::kSystem) {
    facts.of_function = true;
    if (const auto type = function::find_header(started.request.headers, "Content-Type")) facts.content_type = *type;
    head = make_call(started.request, started.route.rest, started.facts, core->served_by, random);
  }
  return std::make_shared<Exchange>(core, std::move(wire), std::move(started.request), std::move(head),
                                    std::move(facts));
}

void run_exchange(const std::shared_ptr<GatewayCore>& core, const std::shared_ptr<Exchange>& exchange) {
  const RequestHead& request = exchange->request;
  const Route to = route(request.method, request.path);
  switch (to.kind) {
    case Route::Kind::kFunction:
      return invoke(core, exchange, to);
    case Route::Kind::kAsync:
      return request.method == "DELETE" ? take_back(core, exchange, to) : enqueue(core, exchange, to);
    default:
      return core->work([core, exchange, rest = std::string(to.rest)] { serve_system(core, exchange, rest); });
  }
}

}  // namespace orla::node
