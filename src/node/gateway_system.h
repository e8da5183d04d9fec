// The system API (/system/...) and what else the gateway answers by itself.
#pragma once

#include <memory>
#include <string_view>

#include "node/gateway_exchange.h"

namespace orla::node {

// `rest`: what follows /system/. The request was read whole. May block; on a worker. Finishes the exchange, now or, for
// logs that are followed, on a thread of its own.
void serve_system(const std::shared_ptr<GatewayCore>& core, const std::shared_ptr<Exchange>& exchange,
                  std::string_view rest);

// The page at /ui/.
Answer ui_page();

}  // namespace orla::node
