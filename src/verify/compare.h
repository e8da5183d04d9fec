// Compares what the cloud holds, and what the edges report, with what the oracle expects.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/ledger.h"
#include "model/partial.h"
#include "model/series.h"
#include "model/time.h"
#include "verify/oracle.h"

namespace orla::verify {

// A window as the cloud's store shows it. Revision and final are not compared.
struct StoredWindow {
  std::string table;
  std::string window;  // model::to_string(WindowSpec)
  std::vector<model::Label> labels;
  model::Time start{};
  model::Time end{};
  model::Statistics shown;
  bool has_order = true;  // false: first and last are null
};

struct Report {
  std::uint64_t windows_compared = 0;   // expected, and there
  std::uint64_t windows_different = 0;  // of these, with another value in some column
  std::uint64_t windows_missing = 0;    // expected, and not there
  std::uint64_t windows_extra = 0;      // there, and not expected
  std::uint64_t inputs_compared = 0;
  std::uint64_t inputs_different = 0;      // another count, late set or rejected set; or not reported; or not known
  std::uint64_t raw_series_compared = 0;   // of metrics that are kept raw: expected, and there
  std::uint64_t raw_series_different = 0;  // with other samples; missing; or not expected
  std::uint64_t raw_samples_compared = 0;  // of the series that do not differ
  model::Ledger totals;                    // expected, over all inputs
  std::vector<std::string> examples;       // of differences, for people; at most kMaxExamples
  std::vector<std::string> warnings;       // what limits the comparison

  std::uint64_t differences() const {
    return windows_different + windows_missing + windows_extra + inputs_different + raw_series_different;
  }
  // Comparing nothing is a failure.
  bool passed() const { return differences() == 0 && windows_compared > 0; }
};

inline constexpr std::size_t kMaxExamples = 20;

// Windows and ledgers come in any order, each once; a second one of the same key counts as extra. Doubles are equal
// when their bits are, where -0.0 is 0.0. Rows of the plan's hidden tables and windows are passed over; rows of tables
// or windows that are not in the plan are extra. Rollups of metrics that a live input may bring are passed over too,
// and a warning names them: what was pushed cannot be read again. Not thread-safe; the oracle has finished and outlives
// it.
class Comparison {
 public:
  Comparison(const model::Plan& plan, const Oracle& oracle);

  void add(const StoredWindow& stored);
  // How far the table is published. Its paned hopping windows (model::is_paned) that end later may be missing; where
  // this is not said, none may.
  void published(const std::string& table, model::Time time) { published_[table] = time; }
  // What the edge of an input reported last. Of a live one only that its terms add up.
  void add(const std::string& input_key, const model::Ledger& reported);
  // Raw samples of a series that the cloud has, as Oracle::raw_hash() of each; of one series any number of times.
  void add(const model::Series& series, const model::SetDigest& samples);
  // Once, after everything was added.
  Report finish();

 private:
  struct Side {
    const Oracle::Table* table = nullptr;
    std::vector<bool> seen;  // by number of the cell
    bool paned = false;
  };
  void compare_raw();
  void example(std::string text);
  void pass_over_live(const model::Plan& plan);

  const Oracle& oracle_;
  std::map<std::pair<std::string, std::string>, Side> sides_;  // by table and window
  std::set<std::pair<std::string, std::string>> hidden_;
  std::map<std::string, model::Time> published_;  // by table
  std::set<std::string> live_inputs_;
  std::set<std::string> passed_over_;  // tables
  std::set<std::string> inputs_seen_;
  std::map<std::string, Oracle::RawSeries> raw_;  // by identity
  std::set<std::string> raw_passed_over_;         // metrics
  Report report_;
};

}  // namespace orla::verify
