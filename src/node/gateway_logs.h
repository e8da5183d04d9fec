// GET /system/logs: kept lines of a function, and with follow the new ones as they come, until the client goes.
#pragma once

#include <memory>

#include "node/gateway_exchange.h"

namespace orla::node {

struct LogRequest {
  function::FunctionKey key;
  function::LogQuery query;
  bool follow = false;
};

// Of the request's query string. INVALID_ARGUMENT names the parameter.
absl::StatusOr<LogRequest> read_log_request(std::string_view query);

// Finishes the exchange; a follower does so on a thread of its own, of which there are `log_followers` at most.
void serve_logs(const std::shared_ptr<GatewayCore>& core, const std::shared_ptr<Exchange>& exchange);

}  // namespace orla::node
