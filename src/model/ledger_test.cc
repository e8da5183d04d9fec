#include "model/ledger.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace orla::model {
namespace {

TEST(Ledger, WhatIsMissingOrTooMuchShows) {
  Ledger ledger;
  ledger.received = 20;
  ledger.aggregated = 5;
  ledger.unmatched = 4;
  ledger.late.add(1);
  ledger.late.add(2);
  ledger.rejected = {{"malformed", 2}, {"jump", 1}};
  ledger.dropped = {{"series_limit", 3}};
  ledger.held = 1;
  EXPECT_EQ(ledger.rejected_total(), 3u);
  EXPECT_EQ(ledger.dropped_total(), 3u);
  EXPECT_EQ(ledger.unaccounted(), 2);
  ledger.aggregated = 8;
  EXPECT_EQ(ledger.unaccounted(), -1);
}

TEST(SetDigest, DoesNotDependOnTheOrder) {
  SetDigest ab;
  ab.add(sample_hash("a", from_ns(1), 1.5));
  ab.add(sample_hash("b", from_ns(1), 1.5));
  SetDigest ba;
  ba.add(sample_hash("b", from_ns(1), 1.5));
  SetDigest rest;
  rest.add(sample_hash("a", from_ns(1), 1.5));
  ba.add(rest);
  EXPECT_EQ(ab, ba);
  ba.add(rest);  // a multiset: twice is not once
  EXPECT_NE(ab, ba);
}

TEST(Hashes, DependOnEveryPart) {
  const std::set<std::uint64_t> all = {sample_hash("a", from_ns(1), 1.5),
                                       sample_hash("b", from_ns(1), 1.5),
                                       sample_hash("a", from_ns(2), 1.5),
                                       sample_hash("a", from_ns(1), 1.25),
                                       sample_hash("a", from_ns(1), 0.0),
                                       sample_hash("a", from_ns(1), -0.0),
                                       row_hash("a", 1),
                                       row_hash("a", 2),
                                       row_hash("b", 1)};
  EXPECT_EQ(all.size(), 9u);
  EXPECT_EQ(sample_hash("a", from_ns(1), NAN), sample_hash("a", from_ns(1), NAN));
}

}  // namespace
}  // namespace orla::model
