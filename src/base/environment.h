// The seam to environment variables.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace orla::base {

// Thread-safe. Outlives every part it is given to.
class Environment {
 public:
  virtual ~Environment() = default;
  // Nothing when the variable is not set; an empty string when it is set and empty.
  virtual std::optional<std::string> get(const std::string& name) const = 0;
};

// The process's own.
class SystemEnvironment final : public Environment {
 public:
  std::optional<std::string> get(const std::string& name) const override;
};

// Exactly these variables.
class FixedEnvironment final : public Environment {
 public:
  explicit FixedEnvironment(std::map<std::string, std::string> variables) : variables_(std::move(variables)) {}
  std::optional<std::string> get(const std::string& name) const override;

 private:
  const std::map<std::string, std::string> variables_;
};

}  // namespace orla::base
