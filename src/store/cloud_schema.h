// The tables and views of the cloud's file (docs/cloud-schema.md), and the numbers its rows use for names.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "model/plan.h"
#include "store/partial_bytes.h"
#include "store/sqlite.h"

namespace orla::store {

inline constexpr std::int64_t kCloudSchemaVersion = 4;
inline constexpr char kCloudFileName[] = "cloud.sqlite";

// The SQL that makes an empty file one of ours.
std::string cloud_schema();

// Brings a file of an earlier version to this one; leaves any other as it is.
absl::Status upgrade_cloud_schema(Database& database);

// To read. NotFound when there is no such file, FailedPrecondition when it is of another version.
absl::StatusOr<std::unique_ptr<Database>> open_cloud_file(const std::string& path);

// Everything a window of the table depends on beside the samples, as text: a table that is defined anew gets new rows.
std::string definition_text(const model::Plan& plan, const model::TableDef& table);

struct CatalogTable {
  std::int64_t rollup = 0;  // rollups.id
  HasOrder has_order = HasOrder::kYes;
  absl::flat_hash_map<std::string, std::int64_t> windows;  // name -> rollup_windows.id
  absl::flat_hash_map<std::int64_t, std::int64_t> steps;   // length in ns -> forecast_steps.id
};

// By table name. References to entries are stable.
using Catalog = absl::flat_hash_map<std::string, std::unique_ptr<CatalogTable>>;

// Makes the file's rollups, windows and steps those of the plan, in the open transaction, and returns their numbers.
// Refuses a file of another fleet.
absl::StatusOr<Catalog> register_plan(Database& database, const model::Plan& plan);

}  // namespace orla::store
