// The HTTP interface of a node (docs/api.md).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "node/http_server.h"
#include "node/status.h"

namespace orla::node {

struct ApiParts {
  // Asks the node's loop; DeadlineExceeded when it does not answer in time.
  std::function<absl::StatusOr<NodeStatus>()> status;
  // `POST /api/v1/inputs/stop`; empty where there are no inputs.
  std::function<void()> stop_inputs;
  // Takes the requests it knows, before all others; empty where nothing is pushed.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> push;
  // Put behind the node's own metrics; empty: nothing.
  std::function<std::string()> more_metrics;
  // The cloud's file; empty elsewhere.
  std::string store_path;
};

// Called on the server's workers.
HttpHandler make_api(ApiParts parts);

}  // namespace orla::node
