// A batch as JSON, for people and for tools that read nothing else. One object, whose members stand in this order:
//
//   "series"   the runs' series numbers
//   "lengths"  the runs' lengths in samples
//   "times"    ns since 1970, one for each sample
//      or "starts" and "steps": for each run the time of its first sample, and ns from one to the next, >= 0
//   "decimals" 0..15, or absent: then values are any doubles
//   "values"   one for each sample; with "decimals" each is a decimal of at most so many places that fits 32 bits
//   without
//              its point. What JSON has no number for is a string of the 16 hexadecimal digits of its bits.
//
// There is no checksum: damage that leaves such an object passes.
#include "base/bytes.h"
#include "codec/json_numbers.h"
#include "codec/packed.h"
#include "codec/sample_codec.h"
#include "fmt/format.h"

namespace orla::codec {

using model::Batch;

namespace {

class JsonCodec final : public SampleCodec {
 public:
  absl::Status encode(const Batch& batch, std::string& out) override {
    absl::Status status = check_columns(batch);
    if (!status.ok()) return status;
    out.clear();
    put(
        "{\"series\":", batch.runs, [](const Batch::Run& run) { return std::int64_t{model::index(run.series)}; }, out);
    put(
        ",\"lengths\":", batch.runs, [](const Batch::Run& run) { return std::int64_t{run.end} - run.begin; }, out);
    if (batch.paces.empty()) {
      put(
          ",\"times\":", batch.times, [](model::Time t) { return model::to_ns(t); }, out);
    } else {
      put(
          ",\"starts\":", batch.paces, [](const Batch::Pace& pace) { return model::to_ns(pace.start); }, out);
      put(
          ",\"steps\":", batch.paces, [](const Batch::Pace& pace) { return std::int64_t{pace.step.count()}; }, out);
    }
    if (batch.scaled.empty()) {
      out += ",\"values\":";
      write_json(batch.values, out);
    } else {
      out += fmt::format(",\"decimals\":{},\"values\":", batch.decimals);
      write_json_decimals(batch.scaled, batch.decimals, out);
    }
    out += '}';
    return absl::OkStatus();
  }

  absl::Status decode(std::string_view bytes, Batch& out) override {
    out.clear();
    JsonReader json(bytes);
    read(json, out);
    json.finish();
    if (!json.failed()) return absl::OkStatus();
    out.clear();
    return absl::InvalidArgumentError("samples as JSON: " + json.problem());
  }

 private:
  template <typename T, typename F>
  void put(std::string_view name, const std::vector<T>& from, F number, std::string& out) {
    numbers_.clear();
    for (const T& each : from) numbers_.push_back(number(each));
    out += name;
    write_json(numbers_, out);
  }

  // Into numbers_.
  void get(std::string_view name, JsonReader& json) {
    json.expect(name);
    json.expect(':');
    numbers_.clear();
    json.array(numbers_);
  }

  void read(JsonReader& json, Batch& out) {
    json.expect('{');
    get("\"series\"", json);
    if (json.failed()) return;
    if (numbers_.size() > kMaxPackedSamples) return json.fail("more runs than a batch may have");
    for (const std::int64_t number : numbers_) {
      if (number < 0 || number > std::int64_t{UINT32_MAX}) return json.fail("a series number is beyond 32 bits");
      out.runs.push_back({static_cast<model::SeriesId>(number), 0, 0});
    }
    json.expect(',');
    get("\"lengths\"", json);
    if (json.failed()) return;
    if (numbers_.size() != out.runs.size()) return json.fail("there are not as many lengths as series");
    std::size_t samples = 0;
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      if (numbers_[i] < 0 || static_cast<std::uint64_t>(numbers_[i]) > kMaxPackedSamples - samples)
        return json.fail("a length is out of range");
      out.runs[i].begin = static_cast<std::uint32_t>(samples);
      samples += static_cast<std::size_t>(numbers_[i]);
      out.runs[i].end = static_cast<std::uint32_t>(samples);
    }
    json.expect(',');
    read_times(json, samples, out);
    json.expect(',');
    if (json.take("\"decimals\"")) {
      json.expect(':');
      out.decimals = static_cast<int>(json.integer(0, model::kMaxScaledDecimals));
      json.expect(',');
      json.expect("\"values\"");
      json.expect(':');
      json.array_of_decimals(out.decimals, out.scaled);
    } else {
      json.expect("\"values\"");
      json.expect(':');
      json.array(out.values);
    }
    json.expect('}');
    if (out.size() != samples) json.fail("the runs are of another number of samples than there are values");
  }

  void read_times(JsonReader& json, std::size_t samples, Batch& out) {
    if (json.take("\"starts\"")) {
      json.expect(':');
      numbers_.clear();
      json.array(numbers_);
      if (numbers_.size() != out.runs.size()) return json.fail("there are not as many starts as runs");
      for (const std::int64_t number : numbers_) out.paces.push_back({model::from_ns(number), {}});
      json.expect(',');
      get("\"steps\"", json);
      if (numbers_.size() != out.runs.size()) return json.fail("there are not as many steps as runs");
      for (std::size_t i = 0; i < numbers_.size(); ++i) out.paces[i].step = model::Duration(numbers_[i]);
      if (const char* wrong = check_paces(out); wrong != nullptr) json.fail(wrong);
      return;
    }
    get("\"times\"", json);
    if (numbers_.size() != samples) return json.fail("the runs are of another number of samples than there are times");
    for (const std::int64_t number : numbers_) out.times.push_back(model::from_ns(number));
  }

  std::vector<std::int64_t> numbers_;
};

}  // namespace

std::unique_ptr<SampleCodec> make_json_codec() { return std::make_unique<JsonCodec>(); }

}  // namespace orla::codec
