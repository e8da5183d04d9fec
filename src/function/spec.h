// What a user deploys: the fields of a FunctionDeployment of the OpenFaaS API, as plain values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace orla::function {

inline constexpr std::string_view kDefaultNamespace = "openfaas-fn";

// "name" and "namespace": each an RFC 1123 label.
struct FunctionKey {
  std::string name;
  std::string space{kDefaultNamespace};

  std::string text() const { return name + "." + space; }
  friend auto operator<=>(const FunctionKey&, const FunctionKey&) = default;
};

inline constexpr std::size_t kMaxLabelBytes = 63;
// Lower-case letters, digits and '-', which is neither first nor last; at most kMaxLabelBytes. `what` names it in the
// error: "function name", "namespace".
absl::Status check_label(std::string_view what, std::string_view text);
// Of an invocation's path: "fn" or "fn.ns", split at the last dot.
FunctionKey key_of(std::string_view text);

// As they are written: "128Mi", "500m", "0.5". Empty: none asked for.
struct Resources {
  std::string memory;
  std::string cpu;
  friend bool operator==(const Resources&, const Resources&) = default;
};

struct FunctionSpec {
  FunctionKey key;
  std::string image;        // see docs/functions.md: a file, a directory, or "native/NAME"
  std::string env_process;  // the fprocess: a command line, split at single spaces
  std::map<std::string, std::string> environment;
  std::vector<std::string> constraints;
  std::vector<std::string> secrets;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  Resources limits;
  Resources requests;
  bool read_only_root = false;

  friend bool operator==(const FunctionSpec&, const FunctionSpec&) = default;
};

}  // namespace orla::function
