#include "base/environment.h"

#include <cstdlib>

namespace orla::base {

std::optional<std::string> SystemEnvironment::get(const std::string& name) const {
  const char* value = std::getenv(name.c_str());  // the program never changes its own environment
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::optional<std::string> FixedEnvironment::get(const std::string& name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

}  // namespace orla::base
