#include "stream/raw_samples.h"

#include <gtest/gtest.h>

#include <bit>

#include "stream/edge_for_tests.h"

namespace orla::stream {
namespace {

using edge_tests::at;
using edge_tests::plug;
using model::Batch;
using model::GroupId;
using model::SeriesId;

// (group, ns, bits of the value), in the order in which they leave.
using Told = std::vector<std::tuple<std::uint32_t, std::int64_t, std::uint64_t>>;

Told told(std::vector<RawBatch> batches) {
  Told out;
  for (RawBatch& batch : batches) {
    EXPECT_EQ(batch.samples.runs.size(), batch.groups.size());
    batch.samples.make_plain();
    for (std::size_t r = 0; r < batch.groups.size(); ++r) {
      EXPECT_EQ(model::index(batch.samples.runs[r].series), r);
      for (std::uint32_t i = batch.samples.runs[r].begin; i < batch.samples.runs[r].end; ++i) {
        EXPECT_LE(batch.from, batch.samples.times[i]);
        EXPECT_GE(batch.last, batch.samples.times[i]);
        out.emplace_back(model::index(batch.groups[r]), model::to_ns(batch.samples.times[i]),
                         std::bit_cast<std::uint64_t>(batch.samples.values[i]));
      }
    }
  }
  return out;
}

std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v); }

Batch paced(std::int64_t start, std::int64_t step, std::vector<std::int32_t> values) {
  Batch batch;
  batch.decimals = 1;
  batch.scaled = std::move(values);
  batch.runs = {{SeriesId{0}, 0, static_cast<std::uint32_t>(batch.scaled.size())}};
  batch.paces = {{model::from_ns(start), model::Duration(step)}};
  return batch;
}

TEST(RawSamples, LeaveByGroupAndInOrderOfAcceptance) {
  RawSamples raw;
  raw.add(GroupId{5}, paced(100, 10, {1, 2, 3}), 0, 0, 3);
  raw.add(GroupId{2}, paced(100, 10, {4, 5}), 0, 0, 2);
  raw.add(GroupId{5}, paced(90, 10, {6, 7}), 0, 1, 2);  // the second of them, at 100 again
  EXPECT_EQ(raw.size(), 6u);
  const Told expected = {{2, 100, bits(0.4)}, {2, 110, bits(0.5)}, {5, 100, bits(0.1)},
                         {5, 110, bits(0.2)}, {5, 120, bits(0.3)}, {5, 100, bits(0.7)}};
  EXPECT_EQ(told(raw.take(100)), expected);
  EXPECT_EQ(raw.size(), 0u);
  EXPECT_TRUE(raw.take(100).empty());
}

TEST(RawSamples, RunsThatGoOnEvenlyBecomeOne) {
  RawSamples raw;
  for (int i = 0; i < 50; ++i) {
    raw.add(GroupId{1}, paced(100 + 20 * i, 10, {i, i}), 0, 0, 2);
    raw.add(GroupId{0}, paced(100 + 20 * i, 10, {i, i}), 0, 0, 2);
  }
  const std::vector<RawBatch> batches = raw.take(1000);
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].samples.runs.size(), 2u);
  EXPECT_EQ(batches[0].samples.paces.size(), 2u);
  EXPECT_EQ(batches[0].samples.scaled.size(), 200u);  // integers all the way
}

TEST(RawSamples, AreCutAtTheBound) {
  RawSamples raw;
  raw.add(GroupId{1}, paced(0, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), 0, 0, 10);
  raw.add(GroupId{0}, paced(0, 1, {0}), 0, 0, 1);
  std::vector<RawBatch> batches = raw.take(4);
  ASSERT_EQ(batches.size(), 3u);
  for (const RawBatch& batch : batches) EXPECT_LE(batch.samples.size(), 4u);
  const Told all = told(std::move(batches));
  ASSERT_EQ(all.size(), 11u);
  for (std::uint32_t i = 1; i < all.size(); ++i) EXPECT_EQ(std::get<1>(all[i]), i - 1);
}

TEST(RawSamples, FormsThatDifferAndSingleSamplesKeepTheirBits) {
  RawSamples raw;
  raw.add(GroupId{0}, model::from_ns(1), 2.5, 1);   // an integer of tenths
  raw.add(GroupId{0}, model::from_ns(2), 2.55, 1);  // none
  raw.add(GroupId{0}, model::from_ns(3), -0.0, 1);  // none either: integers have no such zero
  raw.add(GroupId{0}, paced(4, 0, {9}), 0, 0, 1);
  Batch plain;
  plain.runs = {{SeriesId{0}, 0, 2}};
  plain.times = {model::from_ns(7), model::from_ns(6)};
  plain.values = {1e-300, 3};
  raw.add(GroupId{0}, plain, 0, 0, 2);
  const Told expected = {{0, 1, bits(2.5)}, {0, 2, bits(2.55)},   {0, 3, bits(-0.0)},
                         {0, 4, bits(0.9)}, {0, 7, bits(1e-300)}, {0, 6, bits(3)}};
  EXPECT_EQ(told(raw.take(100)), expected);
}

// load is kept raw.
model::Plan raw_plan() {
  model::Fleet fleet = edge_tests::make_test_plan(1, std::chrono::minutes(10)).fleet;
  fleet.rollups[0].keep_raw = fleet.rollups[1].keep_raw = true;
  return model::make_plan(fleet);
}

TEST(RawStream, IsOneForAllThatAsk) {
  const model::Plan plan = raw_plan();
  ASSERT_EQ(plan.raw_streams.size(), 1u);
  EXPECT_EQ(plan.raw_streams[0].name, "load/raw");
  EXPECT_NE(plan.raw_stream(0), nullptr);
  EXPECT_EQ(plan.raw_stream(1), nullptr);
  const model::GroupDef group = model::raw_group(plan.raw_streams[0], plug("load", 1, 2));
  EXPECT_EQ(model::raw_series(group), plug("load", 1, 2));
  EXPECT_EQ(model::raw_series(model::GroupDef{"load", 1, 1, 1, {}}), std::nullopt);
}

// What an engine gives, by series.
std::vector<std::tuple<std::string, double, double>> sealed_raw(EdgeEngine& engine) {
  std::vector<std::tuple<std::string, double, double>> out;
  const std::optional<Sealed> sealed = engine.seal(SealScope::kPublished, SealWhen::kSomethingNew);
  if (!sealed) return out;
  for (RawBatch batch : sealed->raw) {
    batch.samples.make_plain();
    for (std::size_t r = 0; r < batch.groups.size(); ++r) {
      const model::GroupDef group = engine.group(batch.groups[r]);
      EXPECT_EQ(group.stream, "load/raw");
      for (std::uint32_t i = batch.samples.runs[r].begin; i < batch.samples.runs[r].end; ++i) {
        out.emplace_back(edge_tests::text(group.labels),
                         static_cast<double>((batch.samples.times[i] - edge_tests::kStart).count()) / 1e9,
                         batch.samples.values[i]);
      }
    }
  }
  return out;
}

TEST(RawStream, HoldsExactlyWhatIsAcceptedSinceTheSealBefore) {
  const model::Plan plan = raw_plan();
  EdgeEngine engine(plan, edge_tests::keys(plan));
  edge_tests::Feed feed;
  const auto apply = [&](const std::vector<edge_tests::Sample>& samples, std::size_t row) {
    ASSERT_TRUE(engine.apply(0, feed.batch(samples, row), {}).ok());
  };
  const model::Series a = plug("load", 1, 1);
  const std::string name = edge_tests::text(a.labels);
  apply({{0, a, at(200), 1.5},
         {0, a, at(201), 0.3},
         {0, plug("work", 1, 1), at(201), 7},  // not kept raw
         {0, a, at(50), 9},                    // late
         {0, a, at(150), 2.25}},               // behind, and accepted
        5);
  EXPECT_EQ(engine.raw_samples(), 3u);
  const std::vector<std::tuple<std::string, double, double>> first = {
      {name, 200, 1.5}, {name, 201, 0.3}, {name, 150, 2.25}};
  EXPECT_EQ(sealed_raw(engine), first);
  EXPECT_FALSE(engine.seal(SealScope::kPublished, SealWhen::kSomethingNew).has_value());
  // Two jumps are held, the third makes all three real.
  apply({{0, a, at(5000), 1}, {0, a, at(5001), 2}}, 7);
  EXPECT_EQ(engine.raw_samples(), 0u);
  apply({{0, a, at(5002), 3}}, 8);
  const std::vector<std::tuple<std::string, double, double>> held = {{name, 5000, 1}, {name, 5001, 2}, {name, 5002, 3}};
  EXPECT_EQ(sealed_raw(engine), held);
}

TEST(RawStream, LongRunsOfIntegersStayIntegers) {
  const model::Plan plan = raw_plan();
  EdgeEngine engine(plan, edge_tests::keys(plan));
  model::InputBatch batch;
  batch.new_series = {plug("load", 1, 1), plug("load", 1, 2)};
  for (int k = 0; k < 2; ++k) {
    const auto begin = static_cast<std::uint32_t>(batch.samples.scaled.size());
    for (int i = 0; i < 200; ++i) batch.samples.scaled.push_back(10 * k + i);
    batch.samples.runs.push_back({SeriesId{static_cast<std::uint32_t>(k)}, begin, begin + 200});
    batch.samples.paces.push_back({at(0), std::chrono::seconds(1)});
  }
  batch.samples.decimals = 1;
  batch.received = 400;
  batch.position = {1, 400};
  ASSERT_TRUE(engine.apply(0, batch, {}).ok());
  const std::optional<Sealed> sealed = engine.seal(SealScope::kPublished, SealWhen::kSomethingNew);
  ASSERT_TRUE(sealed.has_value());
  ASSERT_EQ(sealed->raw.size(), 1u);
  EXPECT_EQ(sealed->raw[0].samples.scaled, batch.samples.scaled);
  EXPECT_EQ(sealed->raw[0].samples.runs.size(), 2u);
}

}  // namespace
}  // namespace orla::stream
