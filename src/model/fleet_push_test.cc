// Push inputs in a fleet file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/fleet_file_sample.h"
#include "model/plan.h"

namespace orla::model {
namespace {

using sample::parse;
using sample::replaced;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The good file with a push input of these lines in place of the first input.
std::string with_push(const std::string& lines) {
  std::string text = replaced(
      "kind = \"csv\"\npath = \"data/plugs.csv.gz\"\nspeed = 1.5\nselect = { house = \"0..2\", household = [1, "
      "\"7\"], plug = 4 }\nmax_jump = \"7d\"",
      "kind = \"push\"\n" + lines);
  return text;
}

std::string error_of(const std::string& text) {
  const ParsedFleet parsed = parse(text);
  EXPECT_FALSE(parsed.fleet) << text;
  EXPECT_EQ(parsed.errors.size(), 1u) << to_string(parsed.errors);
  return to_string(parsed.errors);
}

TEST(PushInput, TakesEveryMetricUnlessSaidOtherwise) {
  const ParsedFleet parsed = parse(with_push("future = \"2m\"\nidle_after = \"30s\""));
  ASSERT_TRUE(parsed.fleet) << to_string(parsed.errors);
  const InputSpec& push = parsed.fleet->inputs[0];
  EXPECT_EQ(push.kind, InputSpec::Kind::kPush);
  EXPECT_TRUE(is_live(push.kind));
  EXPECT_EQ(push.key, "edge-1/0");
  EXPECT_EQ(push.future, std::chrono::minutes(2));
  EXPECT_EQ(push.idle_after, std::chrono::seconds(30));
  EXPECT_THAT(metrics_of(push), ElementsAre("load", "work"));
  const Plan plan = make_plan(*parsed.fleet);
  EXPECT_THAT(plan.feeders(0), ElementsAre("edge-1"));
  EXPECT_THAT(plan.feeders(1), ElementsAre("edge-1"));

  const ParsedFleet some = parse(with_push("metrics = \"load\""));
  ASSERT_TRUE(some.fleet) << to_string(some.errors);
  EXPECT_THAT(metrics_of(some.fleet->inputs[0]), ElementsAre("load"));
  EXPECT_THAT(make_plan(*some.fleet).feeders(1), ElementsAre());
}

TEST(PushInput, SendersChooseTheLabels) {
  std::string text = with_push("");
  const std::string by = "by = [\"house\", \"household\", \"plug\"]";
  text.replace(text.find(by), by.size(), "by = [\"house\", \"whatever\", \"plug\"]");
  EXPECT_TRUE(parse(text).fleet) << to_string(parse(text).errors);
}

TEST(PushInput, RefusesWhatIsNotOfIt) {
  for (const char* line :
       {"path = \"x.csv\"", "schema = \"debs2014\"", "speed = 1", "select = { house = 1 }", "max_jump = \"1d\"",
        "generator = { for = \"1h\" }", "header = true", "values = { load = \"w\" }"}) {
    const std::string key(line, std::string_view(line).find(' '));
    EXPECT_THAT(error_of(with_push(line)), HasSubstr("\"" + key + "\" beside kind = \"push\"")) << line;
  }
  EXPECT_THAT(error_of(with_push("metrics = [\"load\", \"wrk\"]")),
              HasSubstr("unknown metric \"wrk\"; did you mean \"work\"?"));
  EXPECT_THAT(error_of(with_push("\n[[input]]\nnode = \"edge-1\"\nkind = \"push\"")),
              HasSubstr("a second push input of \"edge-1\"; expected one per edge"));
  EXPECT_THAT(error_of(replaced("kind = \"csv\"", "kind = \"csv\"\nmetrics = [\"load\"]")),
              HasSubstr("\"metrics\" beside an input that is no push"));
}

}  // namespace
}  // namespace orla::model
