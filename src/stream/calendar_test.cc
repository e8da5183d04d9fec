#include "stream/calendar.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace orla::stream {
namespace {

using model::Duration;
using model::from_ns;
using model::Time;
using model::WindowSpec;
using std::chrono::hours;
using std::chrono::minutes;

Time utc(const std::string& text) {
  absl::Time t;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &t, &error)) << error;
  return from_ns(absl::ToUnixNanos(t));
}

Calendar calendar(const std::string& zone) {
  absl::StatusOr<Calendar> c = Calendar::load(zone);
  EXPECT_TRUE(c.ok()) << c.status();
  return *c;
}

WindowSpec elapsed(Duration size) { return {WindowSpec::Kind::kElapsed, size, {}}; }
WindowSpec hopping(Duration size, Duration hop) { return {WindowSpec::Kind::kHopping, size, hop}; }
WindowSpec steps(Duration size) { return {WindowSpec::Kind::kSteps, size, {}}; }

// From Python's zoneinfo, by scanning the minutes for the first with the date.
struct GoldenDay {
  const char* zone;
  const char* start;
  const char* end;
};
constexpr GoldenDay kDays[] = {
    {"Europe/Berlin", "2013-03-30T23:00:00Z", "2013-03-31T22:00:00Z"},        // 23 h
    {"Europe/Berlin", "2013-10-26T22:00:00Z", "2013-10-27T23:00:00Z"},        // 25 h
    {"America/Sao_Paulo", "2013-10-20T03:00:00Z", "2013-10-21T02:00:00Z"},    // 23 h, begins at 01:00
    {"America/Sao_Paulo", "2014-02-15T02:00:00Z", "2014-02-16T03:00:00Z"},    // 25 h
    {"Asia/Kolkata", "2013-03-30T18:30:00Z", "2013-03-31T18:30:00Z"},         // 24 h
    {"Australia/Lord_Howe", "2013-04-06T13:00:00Z", "2013-04-07T13:30:00Z"},  // 24.5 h
    {"Australia/Lord_Howe", "2013-10-05T13:30:00Z", "2013-10-06T13:00:00Z"},  // 23.5 h
    {"America/St_Johns", "2010-11-06T02:30:00Z", "2010-11-07T02:30:00Z"},
    {"America/St_Johns", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"},  // 25 h; set back at 00:01 to 23:01
    {"Pacific/Apia", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},      // the 29th; the 30th was left out
    {"Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},      // the 31st
};

TEST(Calendar, DaysOfZones) {
  for (const GoldenDay& golden : kDays) {
    SCOPED_TRACE(std::string(golden.zone) + " " + golden.start);
    Calendar c = calendar(golden.zone);
    const Window day{utc(golden.start), utc(golden.end)};
    EXPECT_EQ(c.day(day.start), day);
    EXPECT_EQ(c.day(day.end - Duration(1)), day);
    EXPECT_EQ(c.day(day.end).start, day.end);
    EXPECT_EQ(c.day(day.start - Duration(1)).end, day.start);
    for (Time t = day.start; t < day.end; t += minutes(1)) ASSERT_EQ(c.day(t), day);
  }
}

TEST(Calendar, WindowsStepFromMidnightAndTheLastIsCut) {
  for (const GoldenDay& golden : kDays) {
    SCOPED_TRACE(std::string(golden.zone) + " " + golden.start);
    Calendar c = calendar(golden.zone);
    const Time begin = utc(golden.start);
    const Time end = utc(golden.end);
    for (const Duration size : {Duration(minutes(1)), Duration(minutes(15)), Duration(hours(1)), Duration(hours(5))}) {
      Time expected = begin;
      while (expected < end) {
        const Window w{expected, std::min<Time>(expected + size, end)};
        EXPECT_EQ(c.window_of(elapsed(size), w.start, Time{}), w);
        EXPECT_EQ(c.window_of(elapsed(size), w.end - Duration(1), Time{}), w);
        EXPECT_EQ(c.window_at(elapsed(size), w.start, Time{}), w);
        expected = w.end;
      }
    }
  }
}

TEST(Calendar, SpringDayOfBerlin) {
  Calendar c = calendar("Europe/Berlin");
  // 2 h windows of the 23 h day: twelve, the last one of 1 h, from 23:00 local.
  EXPECT_EQ(c.window_of(elapsed(hours(2)), utc("2013-03-31T21:30:00Z"), Time{}),
            (Window{utc("2013-03-31T21:00:00Z"), utc("2013-03-31T22:00:00Z")}));
  // Local 03:00 is one hour after 01:00: it lies in the window from 02:00 elapsed.
  EXPECT_EQ(c.window_of(elapsed(hours(2)), utc("2013-03-31T01:00:00Z"), Time{}),
            (Window{utc("2013-03-31T01:00:00Z"), utc("2013-03-31T03:00:00Z")}));
}

TEST(Calendar, WeeksAndMonths) {
  Calendar c = calendar("Europe/Berlin");
  const WindowSpec week{WindowSpec::Kind::kWeek, {}, {}};
  const WindowSpec month{WindowSpec::Kind::kMonth, {}, {}};
  // Monday 2013-03-25 to Sunday 31, with the change: 167 h.
  const Window w{utc("2013-03-24T23:00:00Z"), utc("2013-03-31T22:00:00Z")};
  EXPECT_EQ(c.window_of(week, w.start, Time{}), w);
  EXPECT_EQ(c.window_of(week, utc("2013-03-28T12:00:00Z"), Time{}), w);
  EXPECT_EQ(c.window_of(week, w.end - Duration(1), Time{}), w);
  EXPECT_EQ(c.window_of(week, w.end, Time{}).start, w.end);
  const Window m{utc("2013-09-30T22:00:00Z"), utc("2013-10-31T23:00:00Z")};
  EXPECT_EQ(c.window_of(month, m.start, Time{}), m);
  EXPECT_EQ(c.window_of(month, utc("2013-10-27T01:30:00Z"), Time{}), m);
  EXPECT_EQ(c.window_of(month, m.end - Duration(1), Time{}), m);
  EXPECT_EQ(c.window_of(month, utc("2013-12-31T23:30:00Z"), Time{}).end, utc("2014-01-31T23:00:00Z"));
}

TEST(Calendar, HoppingWindowsKeepTheirSizeAcrossMidnight) {
  Calendar c = calendar("UTC");
  std::vector<Window> got;
  c.windows_of(hopping(hours(1), minutes(20)), utc("2013-06-02T00:10:00Z"), Time{}, got);
  EXPECT_EQ(got, (std::vector<Window>{{utc("2013-06-01T23:20:00Z"), utc("2013-06-02T00:20:00Z")},
                                      {utc("2013-06-01T23:40:00Z"), utc("2013-06-02T00:40:00Z")},
                                      {utc("2013-06-02T00:00:00Z"), utc("2013-06-02T01:00:00Z")}}));
  // Hops of 7 h: 0, 7, 14, 21 h of each day.
  c.windows_of(hopping(hours(8), hours(7)), utc("2013-06-02T00:30:00Z"), Time{}, got);
  EXPECT_EQ(got, (std::vector<Window>{{utc("2013-06-01T21:00:00Z"), utc("2013-06-02T05:00:00Z")},
                                      {utc("2013-06-02T00:00:00Z"), utc("2013-06-02T08:00:00Z")}}));
  // A gap between windows.
  c.windows_of(hopping(minutes(10), hours(1)), utc("2013-06-02T00:30:00Z"), Time{}, got);
  EXPECT_TRUE(got.empty());
  EXPECT_EQ(c.window_at(hopping(hours(1), minutes(20)), utc("2013-06-01T23:40:00Z"), Time{}).end,
            utc("2013-06-02T00:40:00Z"));
}

TEST(Calendar, HoppingAgreesWithCountingThemAll) {
  for (const char* zone : {"Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "America/St_Johns"}) {
    Calendar c = calendar(zone);
    Calendar other = calendar(zone);
    for (const auto& [size, hop] : {std::pair<Duration, Duration>{hours(1), minutes(5)},
                                    {hours(26), hours(5)},
                                    {minutes(90), minutes(60)},
                                    {hours(50), hours(24)}}) {
      // All windows from October 2013 into November, day by day.
      std::vector<Window> all;
      const Time from = utc("2013-10-01T12:00:00Z");
      for (Time midnight = other.day(from).start; midnight < from + hours(24 * 40); midnight = other.day(midnight).end)
        for (Time start = midnight; start < other.day(midnight).end; start += hop)
          all.push_back(Window{start, start + size});
      base::SeededRandom random(3);
      std::vector<Window> got;
      for (int i = 0; i < 200; ++i) {
        const Time t =
            from + hours(72) + Duration(minutes(static_cast<std::int64_t>(random.below(std::uint64_t{30} * 24 * 60))));
        std::vector<Window> expected;
        for (const Window& w : all)
          if (w.start <= t && t < w.end) expected.push_back(w);
        c.windows_of(hopping(size, hop), t, Time{}, got);
        ASSERT_EQ(got, expected) << zone;
      }
    }
  }
}

TEST(Calendar, StepsAreNumberedFromTheirAnchor) {
  Calendar c = calendar("Europe/Berlin");
  const Time anchor = utc("2013-03-30T23:00:00Z");  // local midnight of the day of the change
  EXPECT_EQ(c.window_of(steps(hours(2)), utc("2013-03-31T22:30:00Z"), anchor),
            (Window{utc("2013-03-31T21:00:00Z"), utc("2013-03-31T23:00:00Z")}));  // not cut at midnight
  EXPECT_EQ(step_number(utc("2013-03-31T22:30:00Z"), hours(2), anchor), 11);
  EXPECT_EQ(step(11, hours(2), anchor), (Window{utc("2013-03-31T21:00:00Z"), utc("2013-03-31T23:00:00Z")}));
  EXPECT_EQ(step_number(anchor, hours(2), anchor), 0);
  EXPECT_EQ(step_number(anchor - Duration(1), hours(2), anchor), -1);
  EXPECT_EQ(step(-1, hours(2), anchor).end, anchor);
}

TEST(Calendar, ForgetsNothingItNeeds) {
  // More days than are remembered, there and back, against a fresh calendar each.
  Calendar c = calendar("America/St_Johns");
  const Time start = utc("2009-01-01T00:00:00Z");
  base::SeededRandom random(4);
  for (int i = 0; i < 3000; ++i) {
    const Time t = start + Duration(minutes(static_cast<std::int64_t>(random.below(std::uint64_t{1500} * 24 * 60))));
    const Window day = c.day(t);
    ASSERT_LE(day.start, t);
    ASSERT_LT(t, day.end);
    if (i % 100 == 0) {
      ASSERT_EQ(calendar("America/St_Johns").day(t), day);
    }
  }
}

TEST(Calendar, EndsOfTimeDoNotOverflow) {
  Calendar c = calendar("Pacific/Kiritimati");
  std::vector<Window> got;
  for (const Time t : {model::kMinTime, from_ns(INT64_MIN + 1), from_ns(INT64_MAX - 1), model::kMaxTime}) {
    c.day(t);
    c.week(t);
    c.month(t);
    c.window_of(elapsed(hours(1)), t, from_ns(0));
    c.window_of(steps(hours(1)), t, from_ns(-1));
    c.windows_of(hopping(hours(3), hours(1)), t, from_ns(0), got);
    EXPECT_LE(got.size(), 4u);
  }
}

TEST(Calendar, UnknownZoneIsNamed) {
  const absl::Status status = Calendar::load("Europe/Darmstadt").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(status.message()).find("Europe/Darmstadt"), std::string::npos);
}

}  // namespace
}  // namespace orla::stream
