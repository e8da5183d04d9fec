#include "ingest/generator.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/byte_source.h"
#include "ingest/csv_debs.h"
#include "ingest/generator_input.h"
#include "ingest/generator_profiles.h"
#include "ingest/read_all.h"

namespace orla::ingest {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// 2013-09-01T00:00:00+02:00
constexpr std::int64_t kStart = 1377986400;

model::GeneratorSpec spec_of(int houses, model::Duration length, std::uint64_t seed = 1) {
  return {houses, seed, model::Time(seconds(kStart)), length};
}

std::string csv_of(const model::GeneratorSpec& spec) {
  std::string text;
  const absl::Status status = write_debs2014_csv(spec, [&](std::string_view piece) {
    EXPECT_TRUE(piece.ends_with('\n'));
    text += piece;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return text;
}

std::unique_ptr<Input> input_of(const model::GeneratorSpec& spec, const Selection& selection = Selection(),
                                BatchLimits limits = {}, const model::Position& from = {}) {
  auto input = make_generator_input(spec, selection, "e/0", limits, from);
  EXPECT_TRUE(input.ok()) << input.status();
  return *std::move(input);
}

struct Row {
  std::int64_t time = 0;
  double value = 0;
  unsigned property = 0;
  std::array<std::uint32_t, 3> plug{};  // house, household, plug
};

std::vector<Row> rows_of(const model::GeneratorSpec& spec) {
  Generator generator = *Generator::make(spec, Selection());
  std::vector<Row> rows;
  for (std::int64_t s = generator.first_second(); s < generator.end_second(); ++s) {
    generator.go_to(s);
    for (std::size_t i = 0; i < generator.plugs().size(); ++i) {
      const GeneratedPlug& p = generator.plugs()[i];
      generator.rows(i, [&](unsigned property, std::int64_t thousandths) {
        rows.push_back({s, static_cast<double>(thousandths) / 1000, property, {p.house, p.household, p.plug}});
      });
    }
  }
  return rows;
}

TEST(Generator, HousesAndPlugsOfTheChallenge) {
  const Generator generator = *Generator::make(spec_of(40, hours(1)), Selection());
  EXPECT_EQ(generator.plugs().size(), 2125U);
  std::map<std::uint32_t, int> sizes;
  std::set<std::array<std::uint32_t, 3>> ids;
  std::set<std::array<std::uint32_t, 2>> households;
  std::vector<int> of_profile(kProfiles);
  for (const GeneratedPlug& p : generator.plugs()) {
    ++sizes[p.house];
    ids.insert({p.house, p.household, p.plug});
    households.insert({p.house, p.household});
    ++of_profile[p.profile];
  }
  EXPECT_EQ(ids.size(), 2125U);
  EXPECT_EQ(sizes.size(), 40U);
  const int first_ten[] = {107, 10, 47, 35, 102, 11, 26, 71, 26, 35};
  for (std::uint32_t house = 0; house < 10; ++house) EXPECT_EQ(sizes[house], first_ten[house]);
  EXPECT_GT(households.size(), 200U);
  for (const int n : of_profile) EXPECT_GT(n, 100);
  EXPECT_EQ(Generator::make(spec_of(10, hours(1)), Selection())->plugs().size(), 470U);
  EXPECT_EQ(Generator::make(spec_of(80, hours(1)), Selection())->plugs().size(), 4250U);
}

// The figures of the challenge's first 84 seconds, houses 0-9: 33,628 rows, 874 same-second groups, 33 plugs with
// swapped work, 10,647 zero loads of 16,814, 12 initial work values, loads up to 667 W.
TEST(Generator, LooksLikeTheChallengesFirstSeconds) {
  const std::vector<Row> rows = rows_of(spec_of(10, seconds(84)));
  EXPECT_GT(rows.size(), 28000U);
  EXPECT_LT(rows.size(), 40000U);
  std::size_t work = 0;
  std::size_t zeros = 0;
  double largest = 0;
  std::set<double> initial;
  std::set<std::array<std::uint32_t, 3>> plugs;
  std::map<std::array<std::uint32_t, 3>, std::vector<Row>> loads;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (i > 0) {
      ASSERT_GE(row.time, rows[i - 1].time);
    }
    if (i % 2 == 1) {  // always a pair, in either order
      ASSERT_EQ(row.plug, rows[i - 1].plug);
      ASSERT_EQ(row.time, rows[i - 1].time);
      ASSERT_NE(row.property, rows[i - 1].property);
    }
    if (row.property == 0) {
      ++work;
      if (plugs.insert(row.plug).second) initial.insert(row.value);
    } else {
      zeros += row.value == 0 ? 1 : 0;
      largest = std::max(largest, row.value);
      loads[row.plug].push_back(row);
    }
  }
  EXPECT_EQ(plugs.size(), 470U);
  EXPECT_EQ(work * 2, rows.size());
  EXPECT_EQ(initial,
            (std::set<double>{0.161, 0.355, 0.788, 0.962, 0.982, 2.25, 3.216, 3.701, 11.721, 35.086, 68.451, 173.86}));
  EXPECT_GT(static_cast<double>(zeros), 0.55 * static_cast<double>(work));
  EXPECT_LT(static_cast<double>(zeros), 0.75 * static_cast<double>(work));
  EXPECT_GT(largest, 300);
  EXPECT_LT(largest, 800);
  std::map<std::int64_t, int> gaps;
  for (const auto& [plug, list] : loads) {
    for (std::size_t i = 1; i < list.size(); ++i) ++gaps[list[i].time - list[i - 1].time];
  }
  EXPECT_LE(gaps.rbegin()->first, 6);
  EXPECT_GT(gaps[0], 200);
  EXPECT_GT(gaps[2], gaps[1] + gaps[3] + gaps[4] + gaps[5] + gaps[6]);
}

TEST(Generator, WorkGrowsExceptWhereASecondsTwoValuesAreSwapped) {
  std::map<std::array<std::uint32_t, 3>, Row> last;
  int swaps = 0;
  int steps = 0;
  for (const Row& row : rows_of(spec_of(4, minutes(10)))) {
    if (row.property != 0) continue;
    const auto [before, fresh] = last.try_emplace(row.plug, row);
    if (fresh) continue;
    const auto step = std::lround((row.value - before->second.value) * 1000);
    if (step < 0) {
      EXPECT_EQ(step, -1);
      EXPECT_EQ(row.time, before->second.time);
      ++swaps;
    }
    steps += step > 0 ? 1 : 0;
    before->second = row;
  }
  EXPECT_GT(swaps, 10);
  EXPECT_GT(steps, 500);
}

TEST(Generator, DaysResembleEachOther) {
  // The evening's mean load of a house is well above the night's, on each day; a day's energy differs from another's.
  Generator generator = *Generator::make(spec_of(3, hours(24 * 7)), Selection());
  std::set<std::int64_t> evenings;
  for (int day = 0; day < 5; ++day) {
    const auto mean_mw = [&](int hour) {
      std::int64_t sum = 0;
      std::int64_t n = 0;
      for (int minute = 0; minute < 60; minute += 5) {
        for (int s = 0; s < 10; ++s) {
          generator.go_to(kStart + (day * 24 + hour) * 3600 + minute * 60 + s);
          for (std::size_t i = 0; i < generator.plugs().size(); ++i) {
            generator.rows(i, [&](unsigned property, std::int64_t mw) {
              if (property == 0) return;
              sum += mw;
              ++n;
            });
          }
        }
      }
      return sum / n;
    };
    const std::int64_t night = mean_mw(3);
    const std::int64_t evening = mean_mw(20);
    EXPECT_GT(evening, night * 3 / 2) << day;
    evenings.insert(evening);
  }
  EXPECT_EQ(evenings.size(), 5U);
}

TEST(Generator, TheFileAndTheInputGiveTheSameSamples) {
  const model::GeneratorSpec spec = spec_of(40, seconds(80), 7);
  const std::string text = csv_of(spec);
  auto parsed =
      make_csv_input(base::bytes_in_memory(text), "x", make_debs_parser(Selection(), DebsPath::kFast), "e/0", {}, {});
  const Everything file = read_all(**parsed);
  const Everything direct = read_all(*input_of(spec));
  EXPECT_EQ(direct.broken, "");
  EXPECT_EQ(file.samples, direct.samples);  // every double equal
  EXPECT_EQ(file.received, direct.received);
  EXPECT_TRUE(file.rejected.empty());
  EXPECT_EQ(direct.position.row, direct.received);
  EXPECT_EQ(static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')), direct.received);
  EXPECT_GT(direct.received, 2 * kMaxBatchRows);
}

TEST(Generator, WritesTheSevenColumns) {
  const std::string text = csv_of(spec_of(1, seconds(30)));
  std::uint64_t id = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    EXPECT_TRUE(line.starts_with(std::to_string(++id) + ",1377986")) << line;
    DebsRow row;
    EXPECT_FALSE(read_debs_row(line, row)) << line;
    const std::string value = line.substr(line.find(',', line.find(',') + 1) + 1);
    const std::string number = value.substr(0, value.find(','));
    if (number.find('.') != std::string::npos) {
      EXPECT_FALSE(number.ends_with('0') || number.ends_with('.')) << line;
    }
    at = end + 1;
  }
  EXPECT_GT(id, 2000U);
}

TEST(Generator, TheSeedDecides) {
  EXPECT_EQ(csv_of(spec_of(2, seconds(20), 1)), csv_of(spec_of(2, seconds(20), 1)));
  EXPECT_NE(csv_of(spec_of(2, seconds(20), 1)), csv_of(spec_of(2, seconds(20), 2)));
  const Everything a = read_all(*input_of(spec_of(2, seconds(60), 1)));
  const Everything b = read_all(*input_of(spec_of(2, seconds(60), 2)));
  // The series are the same.
  EXPECT_TRUE(std::equal(a.samples.begin(), a.samples.end(), b.samples.begin(), b.samples.end(),
                         [](const auto& x, const auto& y) { return x.first == y.first; }));
}

TEST(Generator, AHouseIsTheSameAloneAndAmongOthers) {
  const Everything whole = read_all(*input_of(spec_of(40, minutes(1))));
  const Everything few = read_all(*input_of(spec_of(5, minutes(1))));
  const Everything alone =
      read_all(*input_of(spec_of(40, minutes(1)), Selection(Selection::Accepted{{"house", {"3"}}})));
  std::size_t series = 0;
  for (const auto& [name, samples] : whole.samples) {
    if (name.find("house=3,") == std::string::npos) continue;
    ++series;
    EXPECT_EQ(alone.samples.at(name), samples);
    EXPECT_EQ(few.samples.at(name), samples);
  }
  EXPECT_EQ(series, 70U);
  EXPECT_EQ(alone.samples.size(), 70U);
}

TEST(Generator, GoesOnFromAnyPosition) {
  const model::GeneratorSpec spec = spec_of(3, minutes(2));
  const Everything whole = read_all(*input_of(spec));
  for (const BatchLimits& limits : {BatchLimits{.rows = 100}, BatchLimits{.ahead = {}}}) {
    std::vector<model::Position> positions;
    EXPECT_TRUE(same_but_status(read_all(*input_of(spec, Selection(), limits), &positions), whole));
    ASSERT_GT(positions.size(), 50U);
    for (std::size_t i = 0; i < positions.size(); i += 13) {
      Everything both;
      std::vector<std::string> series;
      model::InputBatch batch;
      auto first = input_of(spec, Selection(), limits);
      for (std::size_t k = 0; k <= i; ++k) {
        ASSERT_TRUE(*first->next(batch));
        add_batch(both, series, batch);
      }
      auto second = input_of(spec, Selection(), {}, positions[i]);
      series.clear();
      while (*second->next(batch)) add_batch(both, series, batch);
      EXPECT_TRUE(same_but_status(both, whole)) << i;
      EXPECT_EQ(both.broken, "");
    }
  }
}

TEST(Generator, PacedBatchesSpanASecond) {
  auto input = input_of(spec_of(1, seconds(10)), Selection(), batch_limits(10, {}));
  model::InputBatch batch;
  int batches = 0;
  while (*input->next(batch)) {
    ++batches;
    for (const model::Time t : batch.samples.times) EXPECT_EQ(t, batch.samples.times[0]);
  }
  EXPECT_EQ(batches, 10);
}

TEST(Generator, LimitsAndPartsOfSeconds) {
  EXPECT_EQ(Generator::make(spec_of(0, hours(1)), Selection()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Generator::make(spec_of(kMaxHouses + 1, hours(1)), Selection()).ok());
  EXPECT_FALSE(Generator::make(spec_of(1, hours(0)), Selection()).ok());
  model::GeneratorSpec spec = spec_of(1, hours(1));
  spec.start = kLatestTime - minutes(1);
  EXPECT_FALSE(Generator::make(spec, Selection()).ok());
  // Whole seconds within [start, start + length).
  spec = {1, 1, model::from_ns(kStart * 1'000'000'000 + 1), std::chrono::milliseconds(2500)};
  const Generator generator = *Generator::make(spec, Selection());
  EXPECT_EQ(generator.first_second(), kStart + 1);
  EXPECT_EQ(generator.end_second(), kStart + 3);
  EXPECT_EQ(make_generator_input(spec, Selection(), "e", {}, {std::uint64_t{9} << 32, 0}).status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST(Generator, AnErrorOfTheSinkEndsIt) {
  int calls = 0;
  const absl::Status status = write_debs2014_csv(spec_of(40, hours(1)), [&](std::string_view) {
    return ++calls == 2 ? absl::CancelledError("closed") : absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 2);
}

TEST(Generator, ProfilesAreWellFormed) {
  ASSERT_EQ(profiles().size(), kProfiles);
  std::set<std::int64_t> initial;
  int silent = 0;
  for (const Profile& p : profiles()) {
    initial.insert(p.initial_work_wh);
    silent += p.steady_mw == 0 ? 1 : 0;
    EXPECT_LE(p.day.size(), 16U);
    for (const DayPart& part : p.day) EXPECT_LT(part.from_minute, part.to_minute);
  }
  EXPECT_EQ(initial.size(), 12U);
  EXPECT_EQ(silent, 9);  // two of them share their initial work: 8 of 12
}

}  // namespace
}  // namespace orla::ingest
