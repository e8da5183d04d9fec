// InfluxDB line protocol, as senders push it over HTTP:
//
//   measurement[,tag=value...] field=value[,field=value...] [timestamp]
//
// Every field is a sample of the metric measurement_field (also a field named "value": cpu value=1 is cpu_value), with
// the tags as labels. Floats and integers (1i, 1u) are taken as the nearest double, booleans as 1 and 0; a text is
// rejected (kNotNumeric), that field alone. Without a timestamp a line is of the time that is given to parse().
//
// Escapes: a backslash before ',' or ' ' (in names and values of tags and fields before '=' too) stands for that
// character, any other is itself; texts have \" and \\. A text may hold line ends. Empty lines and lines that begin
// with '#' are passed over; a line may end with CR LF, and begin or end with blanks. An unreadable line is one
// rejected, whole, and harms no other.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ingest/batch_builder.h"
#include "ingest/input.h"

namespace orla::ingest {

// Bounds of a line; kMaxLineBytes, kMaxLabelBytes (names of metrics and labels too) and the times are those of every
// input.
inline constexpr std::size_t kMaxTags = 64;
inline constexpr std::size_t kMaxFields = 1024;
// Bounds of what is known of all senders of one input.
inline constexpr std::size_t kMaxPushedSeries = std::size_t{1} << 20;
inline constexpr std::size_t kMaxPushedSeriesBytes = std::size_t{256} << 20;

inline constexpr const char* kNotNumeric = "not_numeric";  // a text

enum class Precision : std::int64_t {  // nanoseconds of one unit
  kNs = 1,
  kUs = 1'000,
  kMs = 1'000'000,
  kS = 1'000'000'000,
  kM = 60'000'000'000,
  kH = 3'600'000'000'000,
};
// The names of both versions of the API: ns n us u µ ms s m h. Empty is ns.
std::optional<Precision> parse_precision(std::string_view name);

// The numbers of the series of one push input, for as long as it runs. Thread-safe.
class SeriesTable {
 public:
  explicit SeriesTable(std::size_t max_series = kMaxPushedSeries, std::size_t max_bytes = kMaxPushedSeriesBytes)
      : max_series_(max_series), max_bytes_(max_bytes) {}
  // Nothing when it is new and beyond a bound.
  std::optional<model::SeriesId> number(model::Series series);
  std::size_t size() const;
  // Those numbered from `first` on, in order.
  std::vector<model::Series> since(std::size_t first) const;

 private:
  const std::size_t max_series_;
  const std::size_t max_bytes_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<model::Series> series_;
  absl::flat_hash_map<std::string, model::SeriesId> numbers_;  // by identity
  std::size_t bytes_ = 0;
};

struct LineOptions {
  Precision precision = Precision::kNs;
  model::Time now{};            // of lines without a timestamp
  std::size_t max_samples = 0;  // of one body
};

// One body after another. Not thread-safe; several may share the table, which outlives them.
class LineParser {
 public:
  LineParser(std::string input_key, SeriesTable& series);

  // Fills `out`, whose memory is used again: samples, received, rejected, and the position as bytes and lines of this
  // body. new_series is left empty: the numbers are the table's. RESOURCE_EXHAUSTED, and `out` to be thrown away, for
  // more samples than allowed.
  absl::Status parse(std::string_view body, const LineOptions& options, model::InputBatch& out);

 private:
  // What follows one "measurement,tags" as it is written, so that most lines need no look at it.
  struct Field {
    std::string written;
    std::optional<model::SeriesId> series;  // nothing: beyond a bound
  };
  struct Key {
    std::string measurement;
    std::vector<model::Label> labels;
    std::vector<Field> fields;
  };
  // A line's place and what is read of it.
  struct Line {
    const char* begin;
    const char* at;
    const char* end;       // without CR and LF
    const char* newline;   // or body_end
    const char* body_end;  // of all
    void trim() { end = newline > begin && newline[-1] == '\r' ? newline - 1 : newline; }
    std::uint32_t column(const char* p) const { return static_cast<std::uint32_t>(p - begin) + 1; }
    std::uint32_t column() const { return column(at); }
  };
  using Trouble = std::optional<Fault>;

  Trouble read_line(Line& line, const LineOptions& options);
  Trouble read_key(Line& line, Key*& key);
  Trouble make_key(const Line& line, std::string_view written, Key& key) const;
  Trouble read_field(Line& line, Key& key, std::size_t place);
  Trouble read_text(Line& line);
  Trouble read_time(Line& line, const LineOptions& options, model::Time& time);
  Trouble find_series(const Line& line, Key& key, std::size_t place, std::string_view written,
                      std::optional<model::SeriesId>& series);
  void forget_keys();

  SeriesTable& series_;
  BatchBuilder builder_;
  absl::flat_hash_map<std::string, std::unique_ptr<Key>> keys_;
  std::size_t key_bytes_ = 0;
  // Of the line that is read.
  std::vector<std::pair<model::SeriesId, double>> values_;
  std::vector<Fault> faults_;  // of its fields
};

}  // namespace orla::ingest
