// Questions to the cloud's file, also while a cloud writes it: for `orla query --store`, the HTTP API and verify.
//
// Each question sees one commit's state. Rows come ordered by rollup name, window (or step length) name, start and
// labels, and are streamed: memory holds one window's rows and the labels of one rollup's groups. Labels are compared
// one by one, numbers by their value and before other texts. Rollups whose definition has changed since are not shown.
// Not thread-safe: every thread opens its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/partial.h"
#include "store/cloud_store.h"
#include "store/rollup_rows.h"
#include "store/sqlite.h"

namespace orla::store {

enum class Show : std::uint8_t { kDeclared, kHiddenToo };
enum class Continue : std::uint8_t { kYes, kNo };

struct Query {
  std::string rollup;               // empty: all
  std::string window;               // name of a window, or of a step length for forecasts; empty: all
  std::vector<model::Label> where;  // every one has to hold
  std::optional<model::Time> from;  // from <= start
  std::optional<model::Time> to;    // start < to
  Show show = Show::kDeclared;
  std::uint64_t limit = UINT64_MAX;  // rows
  std::string after;                 // position() of the last row of the page before; empty: from the first row on
};

// Borrowed until the callback returns.
struct WindowAnswer {
  std::string_view rollup;
  std::string_view window;
  const std::vector<model::Label>& labels;
  model::Time start{};
  model::Time end{};
  model::Statistics shown;
  bool has_order = true;  // first and last are meaningful
  std::uint64_t revision = 0;
  bool final = false;
};

struct ForecastAnswer {
  std::string_view rollup;
  std::string_view step;
  const std::vector<model::Label>& labels;
  model::Time made_at{};
  model::Time start{};
  model::Time end{};
  std::optional<double> predicted;
  std::string_view reason;
  std::optional<double> actual;
};

// A text for Query::after: the rows that follow this one.
std::string position(const WindowAnswer& answer);
std::string position(const ForecastAnswer& answer);

class CloudReader {
 public:
  // `path` is the file. NotFound when there is none, FailedPrecondition when it is of another version.
  static absl::StatusOr<std::unique_ptr<CloudReader>> open(const std::string& path);

  // By name. With the times of their windows; each is one look into an index.
  absl::StatusOr<std::vector<RollupInfo>> rollups();
  // Cursors, publications and ledgers of every origin, by node.
  absl::StatusOr<std::vector<OriginRow>> origins();

  // Calls `row` for each row until it says kNo. InvalidArgument for a rollup, window or label that does not exist (the
  // message lists those that do) and for an `after` that is no position.
  absl::Status windows(const Query& query, const std::function<Continue(const WindowAnswer&)>& row);
  absl::Status forecasts(const Query& query, const std::function<Continue(const ForecastAnswer&)>& row);

 private:
  explicit CloudReader(std::unique_ptr<Database> database) : database_(std::move(database)) {}
  std::unique_ptr<Database> database_;
};

// The order of labels in answers: less than 0, 0, more than 0.
int compare_labels(const std::vector<model::Label>& a, const std::vector<model::Label>& b);

}  // namespace orla::store
