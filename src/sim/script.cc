#include "sim/script.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/ledger.h"

namespace orla::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr const char* kMalformed = "malformed";

double random_value(base::Random& random) {
  switch (random.below(10)) {
    case 0:
      return 0;
    case 1:
      return -0.0;
    case 2:
      return random.unit();  // no decimal of three places
    case 3:
      return (random.unit() - 0.5) * 1e18;
    default:
      return static_cast<double>(random.below(700'000)) / 1000;
  }
}

class OracleRows final : public verify::RowSource {
 public:
  explicit OracleRows(const Script& script) : script_(script) {}
  absl::StatusOr<bool> next(verify::Row& row) override {
    if (next_ == script_.rows.size()) return false;
    const Script::Row& said = script_.rows[next_++];
    row.number = next_;
    row.samples.clear();
    row.rejected = said.readable ? nullptr : said.future ? "future" : kMalformed;
    if (said.readable) row.samples.push_back({said.series, said.time, said.value});
    return true;
  }
  const std::vector<model::Series>& series() const override { return script_.series; }

 private:
  const Script& script_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<verify::RowSource> oracle_rows(const Script& script) { return std::make_unique<OracleRows>(script); }

Script make_script(base::Random& random, const std::string& key, int number, std::size_t rows) {
  Script script;
  script.key = key;
  const std::size_t plugs = 1 + random.below(4);
  for (std::size_t plug = 0; plug < plugs; ++plug) {
    script.series.push_back({"load",
                             {{"house", std::to_string(random.below(3))},
                              {"household", std::to_string(number)},
                              {"plug", std::to_string(plug)}}});
  }
  script.series.push_back({"work", {{"house", "0"}, {"household", std::to_string(number)}, {"plug", "0"}}});
  // Shortly before the end of summer time in Berlin, 2013-10-27T01:00:00Z.
  model::Time now = model::from_ns(1'382'835'000'000'000'000) + seconds(random.below(600));
  const std::uint64_t step_s = 1 + random.below(60);
  // In some of them a series stops in the middle, and never comes again.
  const bool sticks = plugs > 1 && random.below(3) == 0;
  for (std::size_t i = 0; i < rows; ++i) {
    if (random.below(3) != 0) now += seconds(random.below(step_s + 1));
    Script::Row row;
    row.series = static_cast<std::uint32_t>(random.below(random.below(10) == 0 ? plugs + 1 : plugs));
    if (sticks && row.series == 0 && i > rows / 4) row.series = 1;
    row.time = now;
    row.value = random_value(random);
    const std::uint64_t fate = random.below(30);
    if (fate < 4) row.time -= seconds(random.below(120));
    if (fate == 4) row.time -= seconds(random.below(4000));
    if (fate == 5) row.time += seconds(random.below(200'000));
    if (fate == 6) now += seconds(random.below(3000));
    row.readable = fate != 7;
    script.rows.push_back(row);
  }
  return script;
}

FakeInputPump::~FakeInputPump() { ++*reading_; }

void FakeInputPump::start(std::size_t input, const model::InputSpec& spec, model::Position from) {
  Reader& reader = readers_[input];
  reader = Reader{};
  reader.script = &scripts_.at(spec.key);
  reader.row = from.row;
  schedule(input);
}

void FakeInputPump::stop() {
  ++*reading_;
  readers_.clear();
}

void FakeInputPump::consumed(std::size_t input) {
  const auto it = readers_.find(input);
  if (it == readers_.end() || it->second.outstanding == 0) return;
  --it->second.outstanding;
  schedule(input);
}

void FakeInputPump::schedule(std::size_t input) {
  Reader& reader = readers_.at(input);
  if (reader.scheduled || reader.ended || reader.outstanding >= kMaxOutstanding) return;
  reader.scheduled = true;
  loop_.post_after(milliseconds(1 + random_.below(250)), [this, input, which = *reading_, now = reading_] {
    if (*now == which) deliver(input);
  });
}

void FakeInputPump::deliver(std::size_t input) {
  Reader& reader = readers_.at(input);
  reader.scheduled = false;
  model::InputBatch batch;
  const std::uint64_t end = std::min<std::uint64_t>(reader.script->rows.size(), reader.row + random_.below(12));
  for (; reader.row < end; ++reader.row) {
    const Script::Row& row = reader.script->rows[reader.row];
    if (bug_ == Bug::kSkipRows && row.readable && !reader.skipped && random_.below(20) == 0) {
      reader.skipped = true;
      continue;
    }
    ++batch.received;
    if (!row.readable) {
      ++batch.rejected[kMalformed];
      batch.rejected_set.add(model::row_hash(reader.script->key, reader.row + 1));
      batch.rejections.push_back({kMalformed, reader.row + 1, 0, "a simulated row that cannot be read"});
      continue;
    }
    const auto [id, is_new] = reader.ids.try_emplace(row.series, model::SeriesId{});
    if (is_new) {
      id->second = model::SeriesId{static_cast<std::uint32_t>(reader.ids.size() - 1)};
      batch.new_series.push_back(reader.script->series[row.series]);
    }
    const auto at = static_cast<std::uint32_t>(batch.samples.times.size());
    if (!batch.samples.runs.empty() && batch.samples.runs.back().series == id->second) {
      batch.samples.runs.back().end = at + 1;
    } else {
      batch.samples.runs.push_back({id->second, at, at + 1});
    }
    batch.samples.times.push_back(row.time);
    batch.samples.values.push_back(row.value);
  }
  batch.position = {reader.row, reader.row};
  batch.end_of_input = reader.row == reader.script->rows.size();
  reader.ended = batch.end_of_input;
  ++reader.outstanding;
  schedule(input);
  if (events_.batch) events_.batch(input, batch, model::kMinTime);
}

}  // namespace orla::sim
