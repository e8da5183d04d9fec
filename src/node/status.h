// What a node says about itself: the one source of its status page, API and metrics.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/batch.h"
#include "model/chunk.h"
#include "model/fleet.h"
#include "model/ledger.h"
#include "model/loss.h"

namespace orla::node {

struct InputStatus {
  std::string key;
  model::Position position;
  bool ended = false;
  bool stopped = false;  // told to stop (orla up --for), may go on at a later start
  std::string error;     // why the input cannot go on; empty when it can
  double progress = -1;  // 0..1 of a replay that ends; negative: unknown
  model::Ledger ledger;
  model::Time newest = model::kMinTime;      // newest accepted event time
  std::vector<model::Rejection> rejections;  // the latest few
};

// The way up (edges and aggregators).
struct UplinkStatus {
  bool connected = false;
  std::string parent;          // the present, or the last tried, parent
  std::uint64_t connects = 0;  // connections that reached Welcome
  std::uint64_t frames_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t refusals = 0;
  std::uint64_t in_flight_bytes = 0;
  std::string error;  // of the last attempt
};

// The push input of an edge. Counts are of pushes (requests), since the start.
struct PushStatus {
  std::uint64_t kept = 0;        // durable
  std::uint64_t duplicates = 0;  // resends of what was there already
  std::uint64_t refused = 0;     // not taken: a bound, or something that is away
  std::uint64_t unknown = 0;     // answered before they were durable
  std::uint64_t waiting = 0;     // taken and not durable yet
  std::uint64_t waiting_bytes = 0;
  double wait_s = 0;  // from taken to durable, summed over `kept`
  double longest_wait_s = 0;
  std::uint64_t producers = 0;                         // whose sequence numbers are kept
  bool clock_set = true;                               // false: it is before this program was built
  std::vector<std::pair<int, std::uint64_t>> answers;  // by HTTP status
};

struct OutboxStatus {
  std::uint64_t chunks = 0;  // not yet acknowledged
  std::uint64_t bytes = 0;
  model::Sequence acknowledged = 0;
  model::Sequence last = 0;      // newest sealed chunk
  std::uint64_t disk_bytes = 0;  // on disk, dead space and journal included
  std::uint64_t tombstones = 0;  // of `chunks`: lost for good, told in their place
  std::string intake;            // what becomes of what comes in: open | blocked | refusing
};

struct ChildStatus {
  std::string node;
  std::string layer;
  double since_s = 0;  // connected for
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
};

// Invariant 3 at a parent, in chunks: received = applied + duplicate + pending.
struct ChunkAccount {
  std::uint64_t received = 0;
  std::uint64_t applied = 0;
  std::uint64_t duplicate = 0;
  std::uint64_t pending = 0;
};

struct OriginStatus {
  std::string node;
  model::Epoch epoch{};
  model::Sequence last = 0;
  std::vector<model::Publication> publications;
  std::vector<std::pair<std::string, model::Ledger>> ledgers;  // by input key
  std::vector<model::Loss> losses;                             // folded in as tombstones, by reason
};

struct TableStatus {
  std::string rollup;
  model::Time publication = model::kMinTime;
};

// A forecast as the status page shows it.
struct ForecastLine {
  std::string rollup;
  std::string step;
  std::string labels;
  model::Time start{};
  std::optional<double> predicted;
  std::optional<double> actual;
  std::string reason;
};

struct CloudStatus {
  std::vector<OriginStatus> origins;
  std::vector<TableStatus> tables;
  std::uint64_t rows_folded = 0;
  std::uint64_t samples_kept = 0;  // raw ones, written to the store
  std::uint64_t windows_written = 0;
  std::uint64_t forecasts_written = 0;
  std::uint64_t commits = 0;
  std::uint64_t parked_rows = 0;
  std::vector<ForecastLine> latest_forecasts;
};

// A node that still reads what an earlier process left. It knows nothing else of itself yet.
struct RecoveryStatus {
  std::uint64_t read_bytes = 0;
  std::uint64_t all_bytes = 0;  // 0: not known yet
};

struct NodeStatus {
  std::string node;
  model::Layer layer = model::Layer::kEdge;
  std::string site;
  std::string fleet;
  std::string version;
  std::int64_t pid = 0;
  double uptime_s = 0;
  std::string listen;  // real addresses
  std::string http;
  std::string gateway;           // of functions; empty: none
  std::string ready;             // empty: ready; else why not
  bool drained = false;          // nothing read or received is still on its way up
  double lag_s = -1;             // how far the newest published time is behind; negative: unknown or not meaningful
  std::uint64_t samples_in = 0;  // edges: samples; others: bytes and frames below
  std::uint64_t frames_in = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t commit_failures = 0;
  double in_per_s = 0;  // over the last seconds: samples (edges) or frames (others)
  double bytes_in_per_s = 0;
  double bytes_out_per_s = 0;
  std::vector<InputStatus> inputs;
  std::optional<RecoveryStatus> recovering;
  std::optional<PushStatus> push;  // edges that have a push input
  std::optional<UplinkStatus> uplink;
  std::optional<OutboxStatus> outbox;
  std::vector<ChildStatus> children;
  std::optional<ChunkAccount> chunks;  // aggregators and the cloud
  std::optional<CloudStatus> cloud;
  std::vector<std::string> alarms;  // what needs a person: the latest few, newest last
};

// The forms in which it is shown (docs/api.md). Times are RFC 3339, or null when unknown.
std::string status_json(const NodeStatus& status);
std::string status_metrics(const NodeStatus& status);
std::string status_page(const NodeStatus& status);

}  // namespace orla::node
