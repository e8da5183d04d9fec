// What a stopped edge has on disk, for people in trouble: `orla outbox inspect` and `verify`.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "store/edge_reading.h"

namespace orla::node {

struct OutboxReport {
  std::string directory;
  store::EdgeReading reading;
  store::EdgeRecovery recovery;
  // Nothing is damaged or lost.
  bool sound() const;
};

// Reads everything in the directory of a node, and changes nothing. NotFound when it is not that of an edge;
// FailedPrecondition while a node uses it.
absl::StatusOr<OutboxReport> report_outbox(const std::string& directory);

std::string outbox_table(const OutboxReport& report);
// One object, with a line end.
std::string outbox_json(const OutboxReport& report);

}  // namespace orla::node
