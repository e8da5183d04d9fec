// The metrics of the OpenFaaS contract, in Prometheus' text format 0.0.4. Only deployed functions have series.
#include <fmt/format.h>

#include <iterator>

#include "node/gateway.h"

namespace orla::node {

std::string gateway_metrics(const function::Host& host) {
  const std::vector<std::pair<function::FunctionKey, function::FunctionCounts>> all = host.counts();
  std::string text;
  auto out = std::back_inserter(text);
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(out, "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  };
  family("gateway_function_invocation_total", "counter", "Calls that have ended, by status.");
  for (const auto& [key, counts] : all) {
    for (const auto& [code, ended] : counts.ended) {
      fmt::format_to(out, "gateway_function_invocation_total{{function_name=\"{}\",code=\"{}\"}} {}\n", key.text(),
                     code, ended.count);
    }
  }
  family("gateway_function_invocation_started", "counter", "Calls that have begun.");
  for (const auto& [key, counts] : all) {
    fmt::format_to(out, "gateway_function_invocation_started{{function_name=\"{}\"}} {}\n", key.text(), counts.started);
  }
  family("gateway_functions_seconds", "histogram", "How long calls took, from the gateway's view.");
  for (const auto& [key, counts] : all) {
    for (const auto& [code, ended] : counts.ended) {
      const std::string labels = fmt::format("function_name=\"{}\",code=\"{}\"", key.text(), code);
      for (std::size_t i = 0; i < std::size(function::kSecondsBuckets) && i < ended.buckets.size(); ++i) {
        fmt::format_to(out, "gateway_functions_seconds_bucket{{{},le=\"{}\"}} {}\n", labels,
                       function::kSecondsBuckets[i], ended.buckets[i]);
      }
      fmt::format_to(out, "gateway_functions_seconds_bucket{{{},le=\"+Inf\"}} {}\n", labels, ended.count);
      fmt::format_to(out, "gateway_functions_seconds_sum{{{}}} {}\n", labels, ended.seconds);
      fmt::format_to(out, "gateway_functions_seconds_count{{{}}} {}\n", labels, ended.count);
    }
  }
  const auto gauge = [&](std::string_view name, std::string_view help, auto member) {
    family(name, "gauge", help);
    for (const auto& [key, counts] : all) {
      fmt::format_to(out, "{}{{function_name=\"{}\"}} {}\n", name, key.text(), counts.*member);
    }
  };
  gauge("gateway_service_count", "Replicas a function has.", &function::FunctionCounts::replicas);
  gauge("orla_function_in_flight", "Calls in a function's replicas.", &function::FunctionCounts::in_flight);
  gauge("orla_function_waiting", "Calls held for a replica.", &function::FunctionCounts::waiting);
  return text;
}

}  // namespace orla::node
