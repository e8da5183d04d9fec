// What `orla up` prints: for people a table that renews itself and a summary, with --json one object a line.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "node/fleet_watch.h"
#include "node/status.h"
#include "verify/compare.h"

namespace orla::node {

struct UpSummary {
  std::string fleet;
  double seconds = 0;  // from the start of the first node to drained
  bool drained = false;
  bool interrupted = false;
  model::Ledger totals;  // over all inputs, as the edges report
  std::optional<verify::Report> verified;
  std::string verify_error;             // why verification could not be done
  std::vector<std::string> rejections;  // the latest few rows of each input: file, line, column, why
  std::vector<std::string> errors;      // of nodes
  std::vector<ForecastLine> forecasts;
  std::filesystem::path state;
  std::string status_page;  // of the cloud
  int exit_code = 0;
};

std::string started_text(const std::vector<NodeView>& nodes, const std::filesystem::path& state);
std::string started_json(const std::string& fleet, const std::vector<NodeView>& nodes,
                         const std::filesystem::path& state);
// A line of heads and one per node, each ended by a newline.
std::string live_table(const std::vector<NodeView>& nodes, double progress);
// One line: for where there is no terminal.
std::string live_line(const std::vector<NodeView>& nodes, double progress);
std::string summary_text(const UpSummary& summary);
std::string summary_json(const UpSummary& summary);

// Sums of every term.
model::Ledger total_of(const std::map<std::string, InputReport>& inputs);

}  // namespace orla::node
