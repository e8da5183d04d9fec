// The system API's JSON (FunctionDeployment, FunctionStatus and the small ones) from and to the host's words. Fields
// that are not known are ignored, as the reference does; one of the wrong type is INVALID_ARGUMENT, which names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "function/host.h"
#include "store/call_queue.h"

namespace orla::node {

absl::StatusOr<function::FunctionSpec> read_deployment(std::string_view json);
// {"functionName", "namespace"}
absl::StatusOr<function::FunctionKey> read_removal(std::string_view json);

struct ScaleOrder {
  std::string name;  // may be empty
  std::string space;
  std::uint32_t replicas = 0;
};
absl::StatusOr<ScaleOrder> read_scale(std::string_view json);

struct SecretOrder {
  function::FunctionKey key;
  std::optional<std::string> value;
};
absl::StatusOr<SecretOrder> read_secret(std::string_view json);

struct Alert {
  function::FunctionKey key;
  bool firing = false;
};
absl::StatusOr<std::vector<Alert>> read_alerts(std::string_view json);

enum class Usage : std::uint8_t { kNo, kYes };
std::string status_of_function_json(const function::FunctionStatus& status, Usage usage);
std::string functions_json(const std::vector<function::FunctionStatus>& all);
std::string secrets_json(const std::vector<function::FunctionKey>& all);
std::string names_json(const std::vector<std::string>& names);
std::string namespace_json(std::string_view name);
std::string info_json();
std::string dead_calls_json(const std::vector<store::DeadCall>& calls);
// One line, with its end.
std::string log_line_json(const function::FunctionKey& key, const function::LogLine& line);

}  // namespace orla::node
