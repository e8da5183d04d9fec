#include "node/verification.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "node/generator_rows.h"
#include "node/sample_format.h"
#include "store/cloud_reader.h"
#include "store/sample_reader.h"
#include "verify/csv_rows.h"

namespace orla::node {

namespace {

// What the cloud has of the metrics that are kept raw.
absl::Status add_samples(const model::Plan& plan, const std::string& cloud_file, verify::Comparison& comparison) {
  if (plan.raw_streams.empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<store::SampleReader>> reader = store::SampleReader::open(cloud_file, sample_format());
  if (!reader.ok()) return reader.status();
  for (const model::RawStreamDef& raw : plan.raw_streams) {
    model::Series series{plan.fleet.metrics[raw.metric].name, {}};
    std::string identity;
    const absl::Status status = (*reader)->samples({series.metric, {}, {}, {}, UINT64_MAX, ""}, [&](const auto& some) {
      if (identity.empty() || series.labels != some.labels) {
        series.labels = some.labels;
        identity = model::identity(series);
      }
      model::SetDigest digest;
      for (std::size_t i = 0; i < some.times.size(); ++i) {
        digest.add(verify::Oracle::raw_hash(identity, some.times[i], some.values[i]));
      }
      comparison.add(series, digest);
      return store::Continue::kYes;
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<verify::Report> verify_fleet(const model::Plan& plan, const std::map<std::string, InputReport>& inputs,
                                            const std::string& cloud_file,
                                            const std::function<void(const std::string& input_key)>& progress) {
  absl::StatusOr<std::unique_ptr<verify::Oracle>> oracle = verify::Oracle::create(plan);
  if (!oracle.ok()) return oracle.status();
  for (std::size_t i = 0; i < plan.fleet.inputs.size(); ++i) {
    const model::InputSpec& spec = plan.fleet.inputs[i];
    const auto report = inputs.find(spec.key);
    if (report == inputs.end()) {
      return absl::FailedPreconditionError(absl::StrCat("input ", spec.key, " was not reported by node ", spec.node));
    }
    if (model::is_live(spec.kind)) continue;  // it cannot be read again; the comparison says what that leaves out
    progress(spec.key);
    absl::StatusOr<std::unique_ptr<verify::RowSource>> rows =
        spec.kind == model::InputSpec::Kind::kGenerator ? open_generator_rows(spec) : verify::open_csv_rows(spec);
    if (!rows.ok()) return rows.status();
    if (absl::Status status = (*oracle)->read(i, report->second.end, **rows); !status.ok()) return status;
  }
  (*oracle)->finish();

  verify::Comparison comparison(plan, **oracle);
  absl::StatusOr<std::unique_ptr<store::CloudReader>> reader = store::CloudReader::open(cloud_file);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<std::vector<store::RollupInfo>> rollups = (*reader)->rollups();
  if (!rollups.ok()) return rollups.status();
  for (const store::RollupInfo& rollup : *rollups) comparison.published(rollup.name, rollup.published);
  const absl::Status read = (*reader)->windows({}, [&](const store::WindowAnswer& a) {
    comparison.add(verify::StoredWindow{std::string(a.rollup), std::string(a.window), a.labels, a.start, a.end, a.shown,
                                        a.has_order});
    return store::Continue::kYes;
  });
  if (!read.ok()) return read;
  if (absl::Status status = add_samples(plan, cloud_file, comparison); !status.ok()) return status;
  for (const auto& [key, input] : inputs) comparison.add(key, input.ledger);
  return comparison.finish();
}

}  // namespace orla::node
