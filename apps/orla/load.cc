#include "load.h"

#include <fmt/format.h>

#include "base/absl_view.h"
#include "model/fleet_file.h"

namespace orla::apps {

std::optional<model::Fleet> load_fleet_or_complain(const std::string& path) {
  const base::SystemEnvironment environment;
  absl::StatusOr<model::Fleet> fleet =
      model::load_fleet(path, [&](std::string_view name) { return environment.get(std::string(name)); });
  if (fleet.ok()) return *std::move(fleet);
  fmt::print(stderr, "{}\n", base::message(fleet.status()));
  return std::nullopt;
}

}  // namespace orla::apps
