#include <nlohmann/json.hpp>

#include "node/status.h"
#include "node/time_text.h"

namespace orla::node {

namespace {

using nlohmann::json;

json time_json(model::Time time) {
  if (time == model::kMinTime) return nullptr;
  return rfc3339(time);
}

json ledger_json(const model::Ledger& ledger) {
  return {{"received", ledger.received},
          {"aggregated", ledger.aggregated},
          {"unmatched", ledger.unmatched},
          {"late", ledger.late.count},
          {"rejected", ledger.rejected_total()},
          {"dropped", ledger.dropped_total()},
          {"pending", ledger.held},
          {"rejected_by_reason", ledger.rejected},
          {"dropped_by_reason", ledger.dropped},
          // Order-independent identities of the late and the rejected set, as decimal text (64 bits).
          {"late_set", std::to_string(ledger.late.sum)},
          {"rejected_set", std::to_string(ledger.rejected_set.sum)}};
}

json forecast_json(const ForecastLine& line) {
  return {{"rollup", line.rollup},
          {"step", line.step},
          {"labels", line.labels},
          {"start", rfc3339(line.start)},
          {"predicted", line.predicted ? json(*line.predicted) : json(nullptr)},
          {"actual", line.actual ? json(*line.actual) : json(nullptr)},
          {"reason", line.reason.empty() ? json(nullptr) : json(line.reason)}};
}

json publications_json(const std::vector<model::Publication>& publications) {
  json out = json::object();
  for (const model::Publication& p : publications) out[p.metric] = time_json(p.time);
  return out;
}

json input_json(const InputStatus& input) {
  json rejections = json::array();
  for (const model::Rejection& r : input.rejections) {
    rejections.push_back({{"reason", r.reason}, {"line", r.row}, {"column", r.column}, {"message", r.message}});
  }
  json out = ledger_json(input.ledger);
  out["input"] = input.key;
  out["position"] = {{"offset", input.position.offset}, {"row", input.position.row}};
  out["ended"] = input.ended;
  out["stopped"] = input.stopped;
  out["error"] = input.error.empty() ? json(nullptr) : json(input.error);
  out["progress"] = input.progress < 0 ? json(nullptr) : json(input.progress);
  out["newest"] = time_json(input.newest);
  out["rejections"] = std::move(rejections);
  return out;
}

json losses_json(const std::vector<model::Loss>& losses) {
  json out = json::object();
  for (const model::Loss& loss : losses) {
    json samples = json::object();
    for (const auto& [input, n] : loss.samples) samples[input] = n;
    out[loss.reason] = {{"chunks", loss.chunks}, {"samples", std::move(samples)}, {"raw_samples", loss.raw_samples}};
  }
  return out;
}

json cloud_json(const CloudStatus& cloud) {
  json origins = json::array();
  for (const OriginStatus& origin : cloud.origins) {
    json ledgers = json::object();
    for (const auto& [key, ledger] : origin.ledgers) ledgers[key] = ledger_json(ledger);
    origins.push_back({{"node", origin.node},
                       {"epoch", std::to_string(static_cast<std::uint64_t>(origin.epoch))},
                       {"last", origin.last},
                       {"published", publications_json(origin.publications)},
                       {"inputs", std::move(ledgers)},
                       {"losses", losses_json(origin.losses)}});
  }
  json tables = json::array();
  for (const TableStatus& table : cloud.tables) {
    tables.push_back({{"rollup", table.rollup}, {"published", time_json(table.publication)}});
  }
  json forecasts = json::array();
  for (const ForecastLine& line : cloud.latest_forecasts) forecasts.push_back(forecast_json(line));
  return {{"origins", std::move(origins)},
          {"latest_forecasts", std::move(forecasts)},
          {"rollups", std::move(tables)},
          {"rows_folded", cloud.rows_folded},
          {"samples_kept", cloud.samples_kept},
          {"windows_written", cloud.windows_written},
          {"forecasts_written", cloud.forecasts_written},
          {"commits", cloud.commits},
          {"parked_rows", cloud.parked_rows}};
}

}  // namespace

std::string status_json(const NodeStatus& s) {
  json out = {{"node", s.node},
              {"layer", model::to_string(s.layer)},
              {"site", s.site},
              {"fleet", s.fleet},
              {"version", s.version},
              {"pid", s.pid},
              {"uptime_s", s.uptime_s},
              {"listen", s.listen},
              {"http", s.http},
              {"gateway", s.gateway},
              {"ready", s.ready.empty()},
              {"not_ready", s.ready.empty() ? json(nullptr) : json(s.ready)},
              {"drained", s.drained},
              {"lag_s", s.lag_s < 0 ? json(nullptr) : json(s.lag_s)},
              {"samples_in", s.samples_in},
              {"frames_in", s.frames_in},
              {"bytes_in", s.bytes_in},
              {"in_per_s", s.in_per_s},
              {"bytes_in_per_s", s.bytes_in_per_s},
              {"bytes_out_per_s", s.bytes_out_per_s},
              {"commit_failures", s.commit_failures},
              {"alarms", s.alarms}};
  out["recovering"] = nullptr;
  if (s.recovering) {
    out["recovering"] = {{"read_bytes", s.recovering->read_bytes}, {"all_bytes", s.recovering->all_bytes}};
  }
  json inputs = json::array();
  for (const InputStatus& input : s.inputs) inputs.push_back(input_json(input));
  out["inputs"] = std::move(inputs);
  if (s.push) {
    json answers = json::object();
    for (const auto& [code, count] : s.push->answers) answers[std::to_string(code)] = count;
    out["push"] = {{"kept", s.push->kept},           {"duplicates", s.push->duplicates},
                   {"refused", s.push->refused},     {"unknown", s.push->unknown},
                   {"waiting", s.push->waiting},     {"waiting_bytes", s.push->waiting_bytes},
                   {"wait_s", s.push->wait_s},       {"longest_wait_s", s.push->longest_wait_s},
                   {"producers", s.push->producers}, {"clock_set", s.push->clock_set},
                   {"answers", std::move(answers)}};
  }
  if (s.uplink) {
    out["uplink"] = {{"connected", s.uplink->connected},
                     {"parent", s.uplink->parent},
                     {"connects", s.uplink->connects},
                     {"frames_sent", s.uplink->frames_sent},
                     {"bytes_sent", s.uplink->bytes_sent},
                     {"refusals", s.uplink->refusals},
                     {"in_flight_bytes", s.uplink->in_flight_bytes},
                     {"error", s.uplink->error.empty() ? json(nullptr) : json(s.uplink->error)}};
  }
  if (s.outbox) {
    out["outbox"] = {
        {"chunks", s.outbox->chunks}, {"bytes", s.outbox->bytes},           {"acknowledged", s.outbox->acknowledged},
        {"last", s.outbox->last},     {"disk_bytes", s.outbox->disk_bytes}, {"tombstones", s.outbox->tombstones},
        {"intake", s.outbox->intake}};
  }
  json children = json::array();
  for (const ChildStatus& child : s.children) {
    children.push_back({{"node", child.node},
                        {"layer", child.layer},
                        {"since_s", child.since_s},
                        {"frames", child.frames},
                        {"bytes", child.bytes}});
  }
  out["children"] = std::move(children);
  if (s.chunks) {
    out["chunks"] = {{"received", s.chunks->received},
                     {"applied", s.chunks->applied},
                     {"duplicate", s.chunks->duplicate},
                     {"pending", s.chunks->pending}};
  }
  if (s.cloud) out["cloud"] = cloud_json(*s.cloud);
  return out.dump(2) + "\n";
}

}  // namespace orla::node
