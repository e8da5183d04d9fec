// The CloudStore on one SQLite file, `cloud.sqlite` in a state directory that one process at a time may write.
//
// Readers (cloud_reader.h, or anything else that speaks SQLite) may open the file at any time; they see whole commits.
// A table whose definition changed starts anew; what it had is kept under its old definition and not shown.
#pragma once

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/file_lock.h"
#include "model/plan.h"
#include "store/cloud_schema.h"
#include "store/cloud_store.h"
#include "store/sample_table.h"
#include "store/sqlite.h"

namespace orla::store {

struct CloudStoreOptions {
  Fsync fsync = Fsync::kOn;
  std::int64_t max_bytes = 0;  // of the file; a commit beyond it is ResourceExhausted. 0 = until the disk is full
  SampleFormat samples = {};   // without one, commits have no raw samples
  TailBounds tail = {};
};

class SqliteCloudStore final : public CloudStore {
 public:
  // `directory` exists. FailedPrecondition when another process has it open, or when the file is another fleet's or of
  // another version.
  static absl::StatusOr<std::unique_ptr<SqliteCloudStore>> open(const std::string& directory, const model::Plan& plan,
                                                                CloudStoreOptions options);

  absl::StatusOr<CloudRecovery> recover() override;
  absl::Status commit(const CloudCommit& commit) override;
  absl::StatusOr<std::vector<WindowRow>> load_windows(const std::string& table, const std::string& window,
                                                      model::Time start) override;
  absl::StatusOr<std::optional<model::Time>> next_start(const std::string& table, const std::string& window,
                                                        model::Time from) override;
  absl::StatusOr<std::vector<model::StateEntry>> load_states(const model::NodeName& node) override;

 private:
  using Groups = absl::flat_hash_map<std::string, std::int64_t>;  // key -> number

  SqliteCloudStore(base::FileLock lock, std::unique_ptr<Database> database, CloudStoreOptions options)
      : lock_(std::move(lock)),
        database_(std::move(database)),
        samples_(*database_, std::move(options.samples), options.tail) {}
  absl::Status prepare();
  absl::Status load_groups();
  absl::Status write(const CloudCommit& commit);
  absl::Status write_origin(const OriginRow& origin);
  absl::Status write_tombstones(const model::NodeName& node, model::Epoch epoch,
                                const std::vector<model::SequenceRange>& tombstones);
  absl::Status write_windows(const std::vector<WindowRow>& rows);
  absl::Status write_forecasts(const CloudCommit& commit);
  absl::Status write_parked(const CloudCommit& commit);
  absl::Status write_progress(const CloudCommit& commit);
  absl::Status recover_tables(CloudRecovery& into);
  absl::Status recover_parked(CloudRecovery& into);
  absl::StatusOr<CatalogTable*> table(const std::string& name) const;
  absl::StatusOr<std::int64_t> step(const std::string& table, std::int64_t step_ns) const;
  absl::StatusOr<std::int64_t> group(const CatalogTable& table, const std::vector<model::Label>& labels);

  base::FileLock lock_;
  std::unique_ptr<Database> database_;
  SampleTable samples_;
  Catalog catalog_;
  absl::flat_hash_map<std::int64_t, Groups> groups_;                     // by rollup number
  absl::flat_hash_map<std::int64_t, std::vector<model::Label>> labels_;  // by group number
  std::vector<std::pair<std::int64_t, std::string>> new_groups_;         // rollup and key, of the open transaction
  std::int64_t next_group_ = 1;
  std::string key_;    // scratch
  std::string state_;  // scratch
  Statement put_group_, put_window_, get_windows_, get_next_;
  Statement put_forecast_, put_actual_;
  Statement put_cursor_, put_publication_, put_ledger_, drop_reasons_, put_reason_, put_closed_;
  Statement drop_tombstones_, put_tombstone_, put_lost_chunks_, put_lost_samples_;
  Statement put_state_, drop_states_, get_states_;
  Statement get_parked_group_, put_parked_group_, get_parked_row_, put_parked_row_, drop_parked_rows_,
      drop_parked_groups_;
  Statement set_published_, set_anchor_, set_progress_;
};

}  // namespace orla::store
