// The metrics of the OpenFaaS contract, in Prometheus' text format 0.0.4. Only deployed functions have series.
#include <fmt/format.h>

#include <iterator>

#include "node/gateway.h"
#include "node/metrics_writer.h"

namespace orla::node {

std::string gateway_metrics(const function::Host& host) {
  const std::vector<std::pair<function::FunctionKey, function::FunctionCounts>> all = host.counts();
  MetricsWriter out;
  const auto of = [](const function::FunctionKey& key) { return model::Label{"function_name", key.text()}; };
  const auto with_code = [&](const function::FunctionKey& key, int code) {
    return std::vector<model::Label>{of(key), {"code", fmt::format("{}", code)}};
  };
  out.family("gateway_function_invocation_total", "counter", "Calls that have ended, by status.");
  for (const auto& [key, counts] : all) {
    for (const auto& [code, ended] : counts.ended) out.sample(with_code(key, code), ended.count);
  }
  out.family("gateway_function_invocation_started", "counter", "Calls that have begun.");
  for (const auto& [key, counts] : all) out.sample({of(key)}, counts.started);
  out.family("gateway_functions_seconds", "histogram", "How long calls took, from the gateway's view.");
  for (const auto& [key, counts] : all) {
    for (const auto& [code, ended] : counts.ended) {
      std::vector<model::Label> labels = with_code(key, code);
      const auto bucket = [&](std::string bound, std::uint64_t count) {
        labels.emplace_back("le", std::move(bound));
        out.sample_of("_bucket", labels, count);
        labels.pop_back();
      };
      for (std::size_t i = 0; i < std::size(function::kSecondsBuckets) && i < ended.buckets.size(); ++i) {
        bucket(fmt::format("{}", function::kSecondsBuckets[i]), ended.buckets[i]);
      }
      bucket("+Inf", ended.count);
      out.sample_of("_sum", labels, ended.seconds);
      out.sample_of("_count", labels, ended.count);
    }
  }
  const auto gauge = [&](std::string_view name, std::string_view help, auto member) {
    out.family(name, "gauge", help);
    for (const auto& [key, counts] : all) out.sample({of(key)}, counts.*member);
  };
  gauge("gateway_service_count", "Replicas a function has.", &function::FunctionCounts::replicas);
  gauge("orla_function_in_flight", "Calls in a function's replicas.", &function::FunctionCounts::in_flight);
  gauge("orla_function_waiting", "Calls held for a replica.", &function::FunctionCounts::waiting);
  return out.take();
}

}  // namespace orla::node
