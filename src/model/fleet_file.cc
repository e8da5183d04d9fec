#include "model/fleet_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "base/files.h"
#include "model/fleet_draft.h"
#include "model/fleet_tree.h"

namespace orla::model {

ParsedFleet parse_fleet(std::string_view text, const std::string& filename, const EnvironmentLookup& environment) {
  FleetErrors errors(filename);
  ParsedFleet result;
  if (const std::optional<TreeValue> tree = parse_tree(text, environment, errors)) {
    FleetDraft draft = read_draft(*tree, std::filesystem::path(filename).parent_path().string(), errors);
    check_names_and_limits(draft, errors);
    check_nodes(draft, errors);
    check_inputs(draft, errors);
    complete_rollups(draft, errors);
    check_forecasts(draft, errors);
    check_functions(draft, errors);
    if (errors.empty()) result.fleet = std::move(draft.fleet);
  }
  result.errors = errors.take();
  return result;
}

namespace {

// A relative path that leads nowhere from the fleet file's folder, but somewhere from the working directory, was meant
// from there: a person gives an environment variable such a path.
void prefer_existing(InputSpec& input, const std::string& directory) {
  const std::string prefix = directory + "/";
  if (input.kind != InputSpec::Kind::kCsv || !input.path.starts_with(prefix)) return;
  const std::string from_here = input.path.substr(prefix.size());
  if (!base::exists(input.path) && base::exists(from_here)) input.path = from_here;
}

}  // namespace

absl::StatusOr<Fleet> load_fleet(const std::filesystem::path& path, const EnvironmentLookup& environment) {
  absl::StatusOr<std::string> text = base::read_file(path, kMaxFleetFileBytes);
  if (!text.ok()) {
    return absl::Status(text.status().code(), fmt::format("{}: the fleet file cannot be read: {}", path.string(),
                                                          std::string(text.status().message())));
  }
  ParsedFleet parsed = parse_fleet(*text, path.string(), environment);
  if (parsed.fleet) {
    for (InputSpec& input : parsed.fleet->inputs) prefer_existing(input, parsed.fleet->directory);
    return *std::move(parsed.fleet);
  }
  return absl::InvalidArgumentError(to_string(parsed.errors));
}

absl::Status check_files(const Fleet& fleet, std::string_view node) {
  std::string problems;
  for (const InputSpec& input : fleet.inputs) {
    if (input.kind != InputSpec::Kind::kCsv || (!node.empty() && input.node != node)) continue;
    std::string problem;
    std::error_code error;
    const std::filesystem::file_type type = std::filesystem::status(input.path, error).type();
    if (type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::none) {
      problem = "there is no such file";
    } else if (type == std::filesystem::file_type::directory) {
      problem = "it is a folder";
    } else if (type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::socket) {
      // Opening one waits for a writer, and what was read could not be read again after a restart.
      problem = "it is a pipe or socket";
    } else if (::access(input.path.c_str(), R_OK) != 0) {
      problem = "it may not be read: " + std::generic_category().message(errno);
    }
    if (problem.empty()) continue;
    problems += fmt::format("{}input {}: {}: {}; expected a CSV file, plain, .gz or .zst", problems.empty() ? "" : "\n",
                            input.key, in_quotes(input.path), problem);
  }
  return problems.empty() ? absl::OkStatus() : absl::NotFoundError(problems);
}

}  // namespace orla::model
