#include "model/zone.h"

#include <gtest/gtest.h>

namespace orla::model {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Zone, Offsets) {
  EXPECT_EQ(utc_offsets("UTC").value(), (std::vector<Duration>{hours(0)}));
  EXPECT_EQ(utc_offsets("Europe/Berlin").value(), (std::vector<Duration>{hours(1), hours(2)}));
  EXPECT_EQ(utc_offsets("Australia/Lord_Howe").value(),
            (std::vector<Duration>{hours(10), minutes(630), hours(11), minutes(690)}));
  EXPECT_EQ(utc_offsets("Asia/Kathmandu").value(), (std::vector<Duration>{minutes(330), minutes(345)}));
  EXPECT_FALSE(utc_offsets("Europe/Atlantis").ok());
  EXPECT_FALSE(utc_offsets("").ok());
}

TEST(Zone, Divides) {
  const auto berlin = utc_offsets("Europe/Berlin").value();
  EXPECT_TRUE(divides_days(hours(1), berlin));
  EXPECT_TRUE(divides_days(seconds(90), berlin));
  EXPECT_FALSE(divides_days(hours(2), berlin));
  EXPECT_FALSE(divides_days(seconds(7), berlin));
  const auto kathmandu = utc_offsets("Asia/Kathmandu").value();
  EXPECT_TRUE(divides_days(minutes(15), kathmandu));
  EXPECT_FALSE(divides_days(minutes(30), kathmandu));
}

TEST(Zone, Tiles) {
  EXPECT_TRUE(tiles_days(hours(24), {hours(0)}));
  EXPECT_TRUE(tiles_days(hours(2), {hours(1)}));  // a zone that never changes: windows only start at odd hours
  EXPECT_FALSE(tiles_days(hours(2), {hours(1), hours(2)}));
  EXPECT_TRUE(tiles_days(hours(1), {hours(1), hours(2)}));
  EXPECT_FALSE(tiles_days(hours(5), {hours(0)}));
}

}  // namespace
}  // namespace orla::model
