// Rows a second of CSV reading alone: bytes in memory to batches grouped by series, on one thread.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "base/byte_source.h"
#include "ingest/csv_input.h"
#include "ingest/generator_input.h"

namespace {

using orla::model::InputSpec;

// Ten minutes of 40 houses, 2,125 plugs, both properties, in the order of the challenge's file.
const std::string& debs_text() {
  static const std::string text = [] {
    std::string all;
    orla::model::GeneratorSpec spec;
    spec.houses = 40;
    spec.seed = 7;
    spec.start = orla::model::from_ns(1'377'986'400'000'000'000);
    spec.length = std::chrono::minutes(10);
    const absl::Status written = orla::ingest::write_debs2014_csv(spec, [&](std::string_view piece) {
      all += piece;
      return absl::OkStatus();
    });
    if (!written.ok()) all.clear();  // the benchmark then counts nothing
    return all;
  }();
  return text;
}

// One row a second of one house, as people export them: civil times, semicolons, three values.
const std::string& table_text() {
  static const std::string text = [] {
    std::string all = "time;room;temperature;humidity;power\n";
    for (int s = 0; s < 800'000; ++s) {
      const int second = s / 8;
      all += fmt::format("2013-09-{:02} {:02}:{:02}:{:02};room {};{}.{};{};{}.{:03}\n", 1 + second / 86400,
                         second / 3600 % 24, second / 60 % 60, second % 60, s % 8, 15 + s % 11, s % 10, 30 + s % 41,
                         s * 7919LL % 2000, s * 131LL % 1000);
    }
    return all;
  }();
  return text;
}

InputSpec debs_spec() {
  InputSpec spec;
  spec.key = std::string("e/0");
  return spec;
}

InputSpec debs_as_mapping_spec() {
  InputSpec spec = debs_spec();
  spec.schema = InputSpec::Schema::kMapping;
  spec.mapping.header = false;
  spec.mapping.time_column = "2";
  spec.mapping.time_format = "unix";
  spec.mapping.labels = {{"house", "7"}, {"household", "6"}, {"plug", "5"}, {"property", "4"}};
  spec.mapping.values = {{"value", "3"}};
  return spec;
}

InputSpec table_spec() {
  InputSpec spec = debs_spec();
  spec.schema = InputSpec::Schema::kMapping;
  spec.mapping.header = true;
  spec.mapping.delimiter = ';';
  spec.mapping.time_column = "time";
  spec.mapping.time_format = "%Y-%m-%d %H:%M:%S";
  spec.mapping.time_zone = "Europe/Berlin";
  spec.mapping.missing = {"", "NA"};
  spec.mapping.labels = {{"room", "room"}};
  spec.mapping.values = {{"temperature", "temperature"}, {"humidity", "humidity"}, {"power", "power"}};
  return spec;
}

// Bytes that are read where they are.
class Borrowed final : public orla::base::ByteSource {
 public:
  explicit Borrowed(std::string_view bytes) : bytes_(bytes) {}
  absl::StatusOr<std::size_t> read(std::span<char> out) override {
    const std::size_t n = std::min(out.size(), bytes_.size() - position_);
    std::memcpy(out.data(), bytes_.data() + position_, n);
    position_ += n;
    return n;
  }
  double progress() const override { return -1; }

 private:
  std::string_view bytes_;
  std::size_t position_ = 0;
};

void read(benchmark::State& state, const std::string& text, const InputSpec& spec) {
  std::uint64_t rows = 0;
  std::uint64_t samples = 0;
  orla::model::InputBatch batch;
  for (auto _ : state) {
    auto parser = orla::ingest::make_row_parser(spec);
    if (!parser.ok()) return state.SkipWithError("no parser");
    auto input =
        orla::ingest::make_csv_input(std::make_unique<Borrowed>(text), "bench", *std::move(parser), "e/0", {}, {});
    if (!input.ok()) return state.SkipWithError("no input");
    for (;;) {
      const absl::StatusOr<bool> more = (*input)->next(batch);
      if (!more.ok()) return state.SkipWithError("it could not be read");
      if (!*more) break;
      samples += batch.samples.size();
      if (!batch.rejected.empty()) return state.SkipWithError("rows were rejected");
    }
    rows += batch.position.row;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(rows));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
  state.counters["samples"] = benchmark::Counter(static_cast<double>(samples), benchmark::Counter::kIsRate);
}

void debs(benchmark::State& state) { read(state, debs_text(), debs_spec()); }
void debs_as_mapping(benchmark::State& state) { read(state, debs_text(), debs_as_mapping_spec()); }
void table(benchmark::State& state) { read(state, table_text(), table_spec()); }
BENCHMARK(debs)->Unit(benchmark::kMillisecond);
BENCHMARK(debs_as_mapping)->Unit(benchmark::kMillisecond);
BENCHMARK(table)->Unit(benchmark::kMillisecond);

}  // namespace
