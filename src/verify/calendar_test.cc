#include "verify/calendar.h"

#include <gtest/gtest.h>

#include <string>

namespace orla::verify {
namespace {

using model::WindowSpec;
using Kind = model::WindowSpec::Kind;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

absl::TimeZone zone(const std::string& name) {
  absl::TimeZone zone;
  EXPECT_TRUE(absl::LoadTimeZone(name, &zone)) << name;
  return zone;
}

model::Time at(const std::string& rfc3339) {
  absl::Time t;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, rfc3339, &t, &error)) << error;
  return model::from_ns(absl::ToUnixNanos(t));
}

// "start end; start end" in UTC
std::string show(const std::vector<Interval>& windows) {
  std::string out;
  for (const Interval& w : windows) {
    if (!out.empty()) out += "; ";
    for (const model::Time t : {w.start, w.end}) {
      if (t == w.end) out += " ";
      out += absl::FormatTime("%Y-%m-%dT%H:%M", absl::FromUnixNanos(model::to_ns(t)), absl::UTCTimeZone());
    }
  }
  return out;
}

TEST(Calendar, ElapsedWindowsStepFromLocalMidnight) {
  const WindowSpec two_hours{Kind::kElapsed, hours(2), {}};
  EXPECT_EQ(show(windows_at(two_hours, at("2013-09-01T13:59:59.999Z"), zone("UTC"))),
            "2013-09-01T12:00 2013-09-01T14:00");
  EXPECT_EQ(show(windows_at(two_hours, at("2013-09-01T14:00:00Z"), zone("UTC"))), "2013-09-01T14:00 2013-09-01T16:00");
  // Kolkata is UTC+05:30, its midnight 18:30 UTC.
  EXPECT_EQ(show(windows_at(two_hours, at("2013-09-01T13:59:59Z"), zone("Asia/Kolkata"))),
            "2013-09-01T12:30 2013-09-01T14:30");
  EXPECT_EQ(show(windows_at(two_hours, at("1969-12-31T23:59:59Z"), zone("UTC"))), "1969-12-31T22:00 1970-01-01T00:00");
}

TEST(Calendar, TheLastElapsedWindowIsCutAtMidnight) {
  const WindowSpec seven_hours{Kind::kElapsed, hours(7), {}};
  EXPECT_EQ(show(windows_at(seven_hours, at("2013-09-01T23:00:00Z"), zone("UTC"))),
            "2013-09-01T21:00 2013-09-02T00:00");
  // 2013-03-31 in Berlin has 23 h (UTC 23:00 to 22:00), so a window of 2 h that begins at 21:00 UTC is cut.
  const WindowSpec two_hours{Kind::kElapsed, hours(2), {}};
  EXPECT_EQ(show(windows_at(two_hours, at("2013-03-31T21:30:00Z"), zone("Europe/Berlin"))),
            "2013-03-31T21:00 2013-03-31T22:00");
  // 2013-10-27 has 25 h (UTC 22:00 to 23:00): the last one begins at 22:00 UTC.
  EXPECT_EQ(show(windows_at(two_hours, at("2013-10-27T22:30:00Z"), zone("Europe/Berlin"))),
            "2013-10-27T22:00 2013-10-27T23:00");
  EXPECT_EQ(show(windows_at(two_hours, at("2013-10-27T23:00:00Z"), zone("Europe/Berlin"))),
            "2013-10-27T23:00 2013-10-28T01:00");
}

TEST(Calendar, DaysHave23To25Hours) {
  const WindowSpec day{Kind::kDay, {}, {}};
  const absl::TimeZone berlin = zone("Europe/Berlin");
  EXPECT_EQ(show(windows_at(day, at("2013-03-31T12:00:00Z"), berlin)), "2013-03-30T23:00 2013-03-31T22:00");
  EXPECT_EQ(show(windows_at(day, at("2013-10-27T12:00:00Z"), berlin)), "2013-10-26T22:00 2013-10-27T23:00");
  EXPECT_EQ(show(windows_at(day, at("2013-07-01T21:59:59Z"), berlin)), "2013-06-30T22:00 2013-07-01T22:00");
  EXPECT_EQ(show(windows_at(day, at("2013-07-01T22:00:00Z"), berlin)), "2013-07-01T22:00 2013-07-02T22:00");
}

TEST(Calendar, WeeksBeginOnMondayAndMonthsOnTheFirst) {
  const WindowSpec week{Kind::kWeek, {}, {}};
  const WindowSpec month{Kind::kMonth, {}, {}};
  // 2013-09-01 is a Sunday.
  EXPECT_EQ(show(windows_at(week, at("2013-09-01T12:00:00Z"), zone("UTC"))), "2013-08-26T00:00 2013-09-02T00:00");
  EXPECT_EQ(show(windows_at(week, at("2013-09-02T00:00:00Z"), zone("UTC"))), "2013-09-02T00:00 2013-09-09T00:00");
  EXPECT_EQ(show(windows_at(month, at("2013-09-02T00:00:00Z"), zone("UTC"))), "2013-09-01T00:00 2013-10-01T00:00");
  EXPECT_EQ(show(windows_at(month, at("2012-12-31T23:30:00Z"), zone("UTC"))), "2012-12-01T00:00 2013-01-01T00:00");
  EXPECT_EQ(show(windows_at(month, at("2012-12-31T23:30:00Z"), zone("Europe/Berlin"))),
            "2012-12-31T23:00 2013-01-31T23:00");
  EXPECT_EQ(show(windows_at(week, at("2013-10-27T12:00:00Z"), zone("Europe/Berlin"))),
            "2013-10-20T22:00 2013-10-27T23:00");
}

TEST(Calendar, HoppingWindowsKeepTheirSizeAndRestartAtMidnight) {
  const WindowSpec hourly{Kind::kHopping, hours(1), minutes(20)};
  EXPECT_EQ(show(windows_at(hourly, at("2013-09-01T10:30:00Z"), zone("UTC"))),
            "2013-09-01T09:40 2013-09-01T10:40; 2013-09-01T10:00 2013-09-01T11:00; 2013-09-01T10:20 2013-09-01T11:20");
  // Across midnight.
  EXPECT_EQ(show(windows_at(hourly, at("2013-09-01T00:10:00Z"), zone("UTC"))),
            "2013-08-31T23:20 2013-09-01T00:20; 2013-08-31T23:40 2013-09-01T00:40; 2013-09-01T00:00 2013-09-01T01:00");
  // A hop of 7 h does not divide the day: 21:00 is the last start, the next is midnight, and both keep 10 h.
  const WindowSpec seven{Kind::kHopping, hours(10), hours(7)};
  EXPECT_EQ(show(windows_at(seven, at("2013-09-02T01:00:00Z"), zone("UTC"))),
            "2013-09-01T21:00 2013-09-02T07:00; 2013-09-02T00:00 2013-09-02T10:00");
  // Longer than a day. The hop of 24 h fits a second time into the day of 25 h.
  const WindowSpec two_days{Kind::kHopping, hours(48), hours(24)};
  EXPECT_EQ(show(windows_at(two_days, at("2013-10-28T12:00:00Z"), zone("Europe/Berlin"))),
            "2013-10-26T22:00 2013-10-28T22:00; 2013-10-27T22:00 2013-10-29T22:00; 2013-10-27T23:00 2013-10-29T23:00");
}

TEST(Calendar, MidnightThatIsSkippedOrRepeated) {
  const WindowSpec day{Kind::kDay, {}, {}};
  // Sao Paulo skipped 2018-11-04 00:00-01:00 (03:00 UTC).
  EXPECT_EQ(show(windows_at(day, at("2018-11-04T12:00:00Z"), zone("America/Sao_Paulo"))),
            "2018-11-04T03:00 2018-11-05T02:00");
  // It repeated 23:00-24:00 on 2018-02-17: that day has 25 h.
  EXPECT_EQ(show(windows_at(day, at("2018-02-18T02:30:00Z"), zone("America/Sao_Paulo"))),
            "2018-02-17T02:00 2018-02-18T03:00");
  // Havana repeats 00:00-01:00: the day begins at the first midnight.
  EXPECT_EQ(show(windows_at(day, at("2013-11-03T05:30:00Z"), zone("America/Havana"))),
            "2013-11-03T04:00 2013-11-04T05:00");
  // Saint John's repeated 23:01-00:01 on 2006-10-29: the day that began at 00:00 goes on.
  EXPECT_EQ(show(windows_at(day, at("2006-10-29T03:00:00Z"), zone("America/St_Johns"))),
            "2006-10-29T02:30 2006-10-30T03:30");
  // Apia left out 2011-12-30 altogether (it was UTC-10 and became UTC+14).
  EXPECT_EQ(show(windows_at(day, at("2011-12-30T09:59:00Z"), zone("Pacific/Apia"))),
            "2011-12-29T10:00 2011-12-30T10:00");
  EXPECT_EQ(show(windows_at(day, at("2011-12-30T10:00:00Z"), zone("Pacific/Apia"))),
            "2011-12-30T10:00 2011-12-31T10:00");
}

TEST(Calendar, EveryInstantIsInExactlyOneElapsedWindow) {
  // Walk 60 days across both changes of several zones: windows follow one another without gap or overlap.
  for (const char* name : {"Europe/Berlin", "America/Havana", "America/St_Johns", "Australia/Lord_Howe"}) {
    for (const char* from : {"2006-03-01T00:00:00Z", "2006-10-01T00:00:00Z"}) {
      for (const auto& spec : {WindowSpec{Kind::kElapsed, minutes(90), {}}, WindowSpec{Kind::kDay, {}, {}}}) {
        model::Time t = at(from);
        const model::Time until = t + hours(24 * 60);
        std::vector<Interval> before = windows_at(spec, t, zone(name));
        while (t < until) {
          t = before.front().end;
          const std::vector<Interval> next = windows_at(spec, t, zone(name));
          ASSERT_EQ(next.size(), 1u);
          ASSERT_EQ(next.front().start, t) << name;
          ASSERT_EQ(windows_at(spec, t - std::chrono::nanoseconds(1), zone(name)), before) << name;
          before = next;
        }
      }
    }
  }
}

}  // namespace
}  // namespace orla::verify
