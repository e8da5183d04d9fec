#include "node/state_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/hash.h"
#include "base/spawner.h"

namespace orla::node {

namespace {

constexpr std::size_t kMaxBytes = 64 * 1024;

std::optional<nlohmann::json> read_json(const std::filesystem::path& path) {
  const absl::StatusOr<std::string> text = base::read_file(path, kMaxBytes);
  if (!text.ok()) return std::nullopt;
  nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

}  // namespace

std::filesystem::path node_directory(const std::filesystem::path& state, const std::string& node) {
  return state / node;
}

absl::Status write_addresses(const std::filesystem::path& state, const std::string& node,
                             const NodeAddresses& addresses) {
  const nlohmann::json json = {
      {"pid", addresses.pid}, {"listen", addresses.listen}, {"http", addresses.http}, {"gateway", addresses.gateway}};
  return base::write_file_atomically(node_directory(state, node) / "address.json", json.dump() + "\n");
}

std::optional<NodeAddresses> read_addresses(const std::filesystem::path& state, const std::string& node) {
  const std::optional<nlohmann::json> json = read_json(node_directory(state, node) / "address.json");
  if (!json) return std::nullopt;
  try {
    return NodeAddresses{json->at("pid").get<std::int64_t>(), json->at("listen").get<std::string>(),
                         json->at("http").get<std::string>(), json->value("gateway", "")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

RunRecord::RunRecord(const std::filesystem::path& fleet_file, const base::Environment& environment) {
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(fleet_file, error);
  const std::string directory = environment.get("XDG_RUNTIME_DIR").value_or("");
  const std::filesystem::path base = directory.empty() ? base::temporary_place() : std::filesystem::path(directory);
  path_ = base / fmt::format("orla-{}-{:016x}.run", getuid(), base::hash64(canonical.string()));
}

absl::Status RunRecord::write(const std::filesystem::path& state, std::int64_t pid) const {
  std::error_code error;
  const nlohmann::json json = {{"pid", pid}, {"state", std::filesystem::absolute(state, error).string()}};
  return base::write_file_atomically(path_, json.dump() + "\n");
}

void RunRecord::remove(std::int64_t pid) const {
  const std::optional<nlohmann::json> json = read_json(path_);
  if (json && json->contains("pid") && (*json)["pid"] != pid) return;
  base::remove_tree(path_).IgnoreError();
}

std::optional<std::filesystem::path> RunRecord::running() const {
  const std::optional<nlohmann::json> json = read_json(path_);
  if (!json || !json->contains("pid") || !json->contains("state")) return std::nullopt;
  if (!(*json)["pid"].is_number_integer() || !(*json)["state"].is_string()) return std::nullopt;
  if (!base::process_runs((*json)["pid"].get<std::int64_t>())) return std::nullopt;
  return std::filesystem::path((*json)["state"].get<std::string>());
}

}  // namespace orla::node
