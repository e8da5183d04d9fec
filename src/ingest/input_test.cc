#include "ingest/input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/read_all.h"

namespace orla::ingest {
namespace {

using ::testing::HasSubstr;

model::InputSpec hour() {
  model::InputSpec spec;
  spec.key = "edge-1/0";
  spec.kind = model::InputSpec::Kind::kCsv;
  spec.path = "tests/data/tracebase/hour.csv";
  return spec;
}

Everything read(const model::InputSpec& spec, const model::Position& from = {}) {
  auto input = make_input(spec, from);
  EXPECT_TRUE(input.ok()) << input.status();
  Everything all = read_all(**input);
  EXPECT_EQ(all.broken, "");
  EXPECT_TRUE(all.status.ok()) << all.status;
  return all;
}

double sum(const std::vector<std::pair<model::Time, double>>& samples) {
  double all = 0;
  for (const auto& [time, value] : samples) all += value;
  return all;
}

// Figures computed from the file by other means: exact fractions in Python.
TEST(Input, AnHourOfTracebase) {
  const Everything all = read(hour());
  EXPECT_EQ(all.received, 1140U);
  EXPECT_TRUE(all.rejected.empty());
  EXPECT_EQ(all.samples.size(), 19U);
  EXPECT_EQ(all.position, (model::Position{33914, 1140}));
  double total = 0;
  int zeros = 0;
  for (const auto& [series, samples] : all.samples) {
    EXPECT_EQ(samples.size(), 60U);
    total += sum(samples);
    for (const auto& [time, value] : samples) zeros += value == 0 ? 1 : 0;
    EXPECT_EQ(samples.front().first, model::Time(std::chrono::seconds(1339801200)));
    EXPECT_EQ(samples.back().first, model::Time(std::chrono::seconds(1339804740)));
  }
  EXPECT_NEAR(total, 23484, 1e-9);
  EXPECT_EQ(zeros, 365);
  EXPECT_NEAR(sum(all.samples.at("load{house=0,household=0,plug=8}")), 2273.6, 1e-9);
  EXPECT_EQ(all.samples.at("load{house=0,household=0,plug=8}").back().second, 84.2);
  EXPECT_NEAR(sum(all.samples.at("load{house=0,household=1,plug=5}")), 4824, 1e-9);
}

TEST(Input, TheMappingReadsTheSameFileAlike) {
  model::InputSpec spec = hour();
  spec.schema = model::InputSpec::Schema::kMapping;
  spec.mapping.header = false;
  spec.mapping.time_column = "2";
  spec.mapping.time_format = "unix";
  spec.mapping.labels = {{"plug", "5"}, {"household", "6"}, {"house", "7"}};
  spec.mapping.values = {{"load", "3"}};
  EXPECT_TRUE(same_but_status(read(spec), read(hour())));
}

TEST(Input, TwoEdgesShareTheFile) {
  model::InputSpec spec = hour();
  spec.select = {{"household", {"1"}}};
  const Everything one = read(spec);
  EXPECT_EQ(one.received, 540U);
  EXPECT_EQ(one.position.row, 1140U);
  spec.select = {{"household", {"0"}}};
  EXPECT_EQ(read(spec).received, 600U);
}

TEST(Input, GoesOnInTheFile) {
  // The 20th row begins the second minute.
  const std::uint64_t size_of_first_minute = 563;
  const Everything rest = read(hour(), {size_of_first_minute, 19});
  EXPECT_EQ(rest.received, 1121U);
  EXPECT_EQ(rest.position, (model::Position{33914, 1140}));
}

TEST(Input, Generator) {
  model::InputSpec spec;
  spec.key = "edge-1/0";
  spec.kind = model::InputSpec::Kind::kGenerator;
  spec.generator.houses = 2;
  spec.generator.start = model::Time(std::chrono::seconds(1377986400));
  spec.generator.length = std::chrono::minutes(1);
  spec.select = {{"house", {"1"}}};
  const Everything all = read(spec);
  EXPECT_EQ(all.samples.size(), 20U);
  EXPECT_EQ(all.received, all.sample_count);
}

TEST(Input, WhatCannotBeOpened) {
  model::InputSpec spec = hour();
  spec.path = "tests/data/tracebase/none.csv";
  const absl::Status missing = make_input(spec, {}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("input edge-1/0"));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("tests/data/tracebase/none.csv"));
  const absl::Status beyond = make_input(hour(), {40000, 1500}).status();
  EXPECT_EQ(beyond.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(beyond.message()), HasSubstr("has 33914 bytes"));
}

}  // namespace
}  // namespace orla::ingest
