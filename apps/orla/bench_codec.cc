// orla bench codec: bytes and time that each encoding of samples takes, on a file's measurements or on made-up ones.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench.h"
#include "bench_ladder_edge.h"
#include "codec/encodings.h"
#include "model/power_of_ten.h"
#include "node/read_batches.h"

namespace orla::apps {

namespace {

constexpr char kCounted[] =
    "measurements (kind a, raw), times and series included, to bytes and back; one thread; of each encoding, the "
    "median "
    "of its runs over all batches, in which the measurements are sorted by series; each batch several times in a row, "
    "as "
    "an edge encodes what it has just read";
constexpr int kInARow = 4;

struct Options {
  std::vector<std::string> paths;
  std::size_t batch = 65536;
  LadderLoad load;
};

// The samples of many batches, sorted by series in each.
class Sorted {
 public:
  explicit Sorted(std::size_t batch) : size_(batch) {}

  void add(model::Batch batch) {
    // What comes as integers leaves as integers, with as many decimals as some batch since the last cut has.
    const bool integers = batch.values.empty();
    const int decimals = batch.decimals;
    integers_ = integers_ && integers;
    decimals_ = std::max(decimals_, decimals);
    batch.make_plain();
    for (const model::Batch::Run& run : batch.runs) {
      const std::size_t series = model::index(run.series);
      if (series >= waiting_.size()) waiting_.resize(series + 1);
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        waiting_[series].first.push_back(batch.times[i]);
        waiting_[series].second.push_back(batch.values[i]);
        if (++count_ < size_) continue;
        cut();
        integers_ = integers;
        decimals_ = decimals;
      }
    }
  }
  std::vector<model::Batch> take() {
    if (count_ > 0) cut();
    return std::move(batches_);
  }

 private:
  void cut() {
    model::Batch& batch = batches_.emplace_back();
    for (std::uint32_t s = 0; s < waiting_.size(); ++s) {
      auto& [times, values] = waiting_[s];
      if (times.empty()) continue;
      const auto begin = static_cast<std::uint32_t>(batch.times.size());
      batch.times.insert(batch.times.end(), times.begin(), times.end());
      batch.values.insert(batch.values.end(), values.begin(), values.end());
      batch.runs.push_back({model::SeriesId{s}, begin, static_cast<std::uint32_t>(batch.times.size())});
      times.clear();
      values.clear();
    }
    if (integers_) use_integers(batch);
    count_ = 0;
  }
  void use_integers(model::Batch& batch) const {
    const double unit = model::power_of_ten(decimals_);
    for (const double value : batch.values)
      if (std::fabs(value * unit) > INT32_MAX) return;
    for (const double value : batch.values)
      batch.scaled.push_back(static_cast<std::int32_t>(std::lround(value * unit)));
    batch.decimals = decimals_;
    batch.values.clear();
  }

  const std::size_t size_;
  std::size_t count_ = 0;
  bool integers_ = true;
  int decimals_ = 0;
  std::vector<std::pair<std::vector<model::Time>, std::vector<double>>> waiting_;  // by series
  std::vector<model::Batch> batches_;
};

absl::StatusOr<std::vector<model::Batch>> batches_of(const Options& o) {
  Sorted sorted(o.batch);
  if (o.paths.empty()) {
    LadderLoad load = o.load;
    load.seconds = 1000;
    ladder_batches(load, 0, [&](const model::Batch& batch) {
      sorted.add(batch);
      return true;
    });
    return sorted.take();
  }
  std::uint32_t series_before = 0;  // of the files before
  for (const std::string& path : o.paths) {
    absl::StatusOr<std::vector<model::Batch>> read = node::read_batches(path);
    if (!read.ok()) return read.status();
    std::uint32_t next = series_before;
    for (model::Batch& batch : *read) {
      for (model::Batch::Run& run : batch.runs) {
        run.series = model::SeriesId{series_before + model::index(run.series)};
        next = std::max(next, model::index(run.series) + 1);
      }
      sorted.add(std::move(batch));
    }
    series_before = next;
  }
  return sorted.take();
}

// Whether each series has the same samples in both, to the bit, in order.
bool same(model::Batch a, model::Batch b) {
  a.make_plain();
  b.make_plain();
  if (a.size() != b.size() || a.times != b.times) return false;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    if (std::bit_cast<std::uint64_t>(a.values[i]) != std::bit_cast<std::uint64_t>(b.values[i])) return false;
  std::vector<model::SeriesId> ids[2];
  for (const auto& [batch, to] : {std::pair{&a, &ids[0]}, {&b, &ids[1]}})
    for (const model::Batch::Run& run : batch->runs) to->insert(to->end(), run.end - run.begin, run.series);
  return ids[0] == ids[1];
}

absl::StatusOr<BenchReport> run(const Options& own, const BenchOptions& options) {
  const absl::StatusOr<std::vector<model::Batch>> batches = batches_of(own);
  if (!batches.ok()) return batches.status();
  std::uint64_t values = 0;
  for (const model::Batch& batch : *batches) values += batch.size();
  if (values == 0) return absl::InvalidArgumentError("the files have no rows");
  const auto encodings = codec::sample_encodings();
  BenchReport report;
  report["values"] = values;
  report["batch"] = own.batch;
  std::string problem;
  BenchOptions each = options;
  each.seconds = options.seconds / static_cast<double>(2 * encodings.size());
  BenchReport costs = BenchReport::array();
  for (const codec::SampleEncoding& encoding : encodings) {
    const std::unique_ptr<codec::SampleCodec> codec = encoding.make();
    std::vector<std::string> bytes(batches->size());
    const auto encoded = measure(each, [&](const Timed& timed) {
      return timed([&]() -> absl::Status {
        for (std::size_t b = 0; b < batches->size(); ++b)
          for (int k = 0; k < kInARow; ++k)
            if (absl::Status s = codec->encode((*batches)[b], bytes[b]); !s.ok()) return s;
        return absl::OkStatus();
      });
    });
    if (!encoded.ok()) return encoded.status();
    model::Batch out;
    const auto decoded = measure(each, [&](const Timed& timed) {
      return timed([&]() -> absl::Status {
        for (const std::string& frame : bytes)
          for (int k = 0; k < kInARow; ++k)
            if (absl::Status s = codec->decode(frame, out); !s.ok()) return s;
        return absl::OkStatus();
      });
    });
    if (!decoded.ok()) return decoded.status();
    std::uint64_t size = 0;
    for (std::size_t b = 0; b < batches->size(); ++b) {
      size += bytes[b].size();
      if (absl::Status s = codec->decode(bytes[b], out); !s.ok()) return s;
      if (problem.empty() && !same((*batches)[b], out))
        problem = fmt::format("{}: batch {} comes back different", encoding.name, b);
    }
    BenchReport& row = costs.emplace_back();
    const auto count = static_cast<double>(values);
    row["encoding"] = encoding.name;
    row["bytes_per_value"] = static_cast<double>(size) / count;
    row["encode_per_s"] = kInARow * count / median_run(*encoded).cpu_seconds;
    row["decode_per_s"] = kInARow * count / median_run(*decoded).cpu_seconds;
  }
  report["encodings"] = std::move(costs);
  conclude(report, problem, kCounted);
  return report;
}

}  // namespace

RunBench add_codec_bench(CLI::App& command) {
  auto own = std::make_shared<Options>();  // with the runner
  own->load.plugs = 2125;
  command.add_option(
      "FILE", own->paths,
      "CSV files (plain, .gz, .zst) of the DEBS 2014 schema, or of one series with the columns timestamp "
      "and w1; without any, made-up measurements");
  command.add_option("--batch", own->batch, "Measurements in a batch")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--seed", own->load.seed, "Of made-up measurements")->capture_default_str();
  return [own](const BenchOptions& options) { return run(*own, options); };
}

}  // namespace orla::apps
