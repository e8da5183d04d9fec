// The rules of a call: which headers the function sees, and what the client gets when there is no response.
#pragma once

#include <string>
#include <string_view>

#include "base/random.h"
#include "function/invocation.h"
#include "function/spec.h"
#include "node/gateway_core.h"
#include "node/gateway_request.h"

namespace orla::node {

// Counted for a call whose client did not wait for its end.
inline constexpr int kClientGone = 499;

struct CallFacts {
  std::string_view peer;   // "127.0.0.1:50000"
  std::string start_time;  // nanoseconds since 1970, as text
  base::SteadyTime deadline{};
};

// A version 4 UUID (RFC 9562).
std::string make_call_id(base::Random& random);

// What the function sees of the request, whose headers and query go into it.
function::CallHead make_call(RequestHead& request, std::string_view rest, const CallFacts& facts,
                             std::string_view user_agent, base::Random& random);

// For an end without a response: not kAnswered or kBroken after something was sent.
Answer answer_of(const function::InvokeResult& result, std::string_view function_name);

}  // namespace orla::node
