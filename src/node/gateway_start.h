// From a request's head to what answers it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "node/gateway_call.h"
#include "node/gateway_exchange.h"
#include "node/gateway_route.h"

namespace orla::node {

// What becomes of a request, as far as its head says.
struct RequestPlan {
  Route route;                   // of the head's path
  std::optional<Answer> answer;  // it is known already, whatever the body is
  bool whole = false;            // the body is read to its end first, whatever its length
  std::uint64_t body_limit = 0;
};

RequestPlan plan_request(GatewayCore& core, const RequestHead& request);

struct StartedRequest {
  RequestHead& request;
  const Route& route;
  const CallFacts& facts;
  bool keep_alive = true;
  base::SteadyTime began{};
};

std::shared_ptr<Exchange> make_exchange(const std::shared_ptr<GatewayCore>& core, std::shared_ptr<Wire> wire,
                                        const StartedRequest& started, base::Random& random);

// Starts the call, or the work, that finishes the exchange. Does not block.
void run_exchange(const std::shared_ptr<GatewayCore>& core, const std::shared_ptr<Exchange>& exchange);

}  // namespace orla::node
