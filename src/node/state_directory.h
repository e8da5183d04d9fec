// Where the nodes of a fleet keep their state on this machine: STATE/<node>/, and in it `address.json` with the node's
// real addresses while it runs (a port of 0 in the fleet file is chosen at the start).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/environment.h"

namespace orla::node {

struct NodeAddresses {
  std::int64_t pid = 0;
  std::string listen;  // empty: none
  std::string http;
  std::string gateway;  // empty: none
};

std::filesystem::path node_directory(const std::filesystem::path& state, const std::string& node);

absl::Status write_addresses(const std::filesystem::path& state, const std::string& node,
                             const NodeAddresses& addresses);
// Nothing when the node has never run here or the file cannot be read.
std::optional<NodeAddresses> read_addresses(const std::filesystem::path& state, const std::string& node);

// Remembers, for `orla node FLEET NAME` without --state, where a running `orla up FLEET` keeps its state. One small
// file per fleet file in the user's runtime directory ($XDG_RUNTIME_DIR, else the machine's place for temporary files).
class RunRecord {
 public:
  RunRecord(const std::filesystem::path& fleet_file, const base::Environment& environment);
  absl::Status write(const std::filesystem::path& state, std::int64_t pid) const;
  // Unless another run of the fleet has written it since.
  void remove(std::int64_t pid) const;
  // The state directory, when the process that wrote the record still runs.
  std::optional<std::filesystem::path> running() const;

 private:
  std::filesystem::path path_;
};

}  // namespace orla::node
