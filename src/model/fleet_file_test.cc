#include "model/fleet_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "model/plan.h"
#include "model/settings.h"

namespace orla::model {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr std::string_view kGood = R"(
[fleet]
name = "test"
zone = "Europe/Berlin"

[[site]]
name = "here"
location = [49.87, 8]

[[node]]
name = "edge-1"
layer = "edge"
site = "here"
http = "127.0.0.1:8411"
parents = [["agg-1", "agg-2"], "cloud"]
durability = "memory"

[[node]]
name = "agg-1"
layer = "aggregator"
listen = "127.0.0.1:7421"
parents = ["cloud"]

[[node]]
name = "agg-2"
layer = "aggregator"
listen = "127.0.0.1:0"
parents = "cloud"

[[node]]
name = "cloud"
layer = "cloud"
listen = "[::1]:7431"

[[metric]]
name = "load"
unit = "W"
decimals = 2
disorder = "30s"
allowed_lateness = "2h"

[[metric]]
name = "work"

[[input]]
node = "edge-1"
kind = "csv"
path = "data/plugs.csv.gz"
speed = 1.5
select = { house = "0..2", household = [1, "7"], plug = 4 }
max_jump = "7d"

[[input]]
node = "edge-1"
path = "/other/values.csv"
schema = "mapping"
time = { column = "stamp", format = "%d/%m/%Y %H:%M:%S", zone = "UTC" }
labels = { house = "house_id", room = 3 }
constants = { country = "DE" }
values = { load = "w1" }
delimiter = ";"
decimal_mark = ","
missing = ["", "NA"]
idle_after = "1m"

[[rollup]]
name = "plug_load"
metric = "load"
by = ["house", "household", "plug"]
windows = ["1m", "15m", "24h", { size = "1h", hop = "5m" }]
emit = "5s"

[[rollup]]
name = "house_load"
from = "plug_load"
by = ["house"]
across = "sum"
of = "mean"

[[rollup]]
name = "city_load"
from = "house_load"
across = "max"
windows = ["1h"]

[[rollup]]
name = "house_pool"
from = "plug_load"
by = "house"
slice = "2m"
windows = ["1h"]

[[forecast]]
of = ["plug_load", "house_load"]
steps = ["1m", "60m", "120m"]

[limits]
series = 12
)";

ParsedFleet parse(std::string_view text, std::map<std::string, std::string> environment = {}) {
  return parse_fleet(text, "dir/fleet.toml", [&](std::string_view name) -> std::optional<std::string> {
    const auto found = environment.find(std::string(name));
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
}

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kGood);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(text.find(from, at + 1), std::string::npos) << "not unique: " << from;
  return text.replace(at, from.size(), to);
}

TEST(FleetFile, ReadsEverything) {
  const ParsedFleet parsed = parse(kGood);
  ASSERT_TRUE(parsed.fleet) << to_string(parsed.errors);
  const Fleet& fleet = *parsed.fleet;
  EXPECT_EQ(fleet.name, "test");
  EXPECT_EQ(fleet.zone, "Europe/Berlin");
  EXPECT_EQ(fleet.idle_after, Duration(minutes(5)));
  EXPECT_EQ(fleet.directory, "dir");
  ASSERT_EQ(fleet.sites.size(), 1u);
  EXPECT_EQ(fleet.sites[0].location, std::pair(49.87, 8.0));

  ASSERT_EQ(fleet.nodes.size(), 4u);
  const NodeSpec& edge = *fleet.node("edge-1");
  EXPECT_EQ(edge.layer, Layer::kEdge);
  EXPECT_EQ(edge.site, "here");
  EXPECT_EQ(edge.listen, "");
  EXPECT_EQ(edge.http, "127.0.0.1:8411");
  EXPECT_EQ(edge.durability, Durability::kMemory);
  EXPECT_THAT(edge.parents, ElementsAre(ElementsAre("agg-1", "agg-2"), ElementsAre("cloud")));
  EXPECT_EQ(fleet.node("agg-1")->layer, Layer::kAggregator);
  EXPECT_EQ(fleet.node("cloud")->layer, Layer::kCloud);
  EXPECT_EQ(fleet.node("cloud")->durability, Durability::kDisk);
  EXPECT_EQ(fleet.node("nobody"), nullptr);

  const MetricSpec& load = *fleet.metric("load");
  EXPECT_EQ(load.unit, "W");
  EXPECT_EQ(load.decimals, 2);
  EXPECT_EQ(load.disorder, Duration(seconds(30)));
  EXPECT_EQ(load.allowed_lateness, Duration(hours(2)));
  EXPECT_EQ(fleet.metric("work")->decimals, 3);
  EXPECT_EQ(fleet.metric("work")->disorder, Duration::zero());
  EXPECT_EQ(fleet.metric("work")->allowed_lateness, Duration(hours(1)));

  const InputSpec& debs = fleet.inputs[0];
  EXPECT_EQ(debs.key, "edge-1/0");
  EXPECT_EQ(debs.kind, InputSpec::Kind::kCsv);
  EXPECT_EQ(debs.path, "dir/data/plugs.csv.gz");
  EXPECT_EQ(debs.schema, InputSpec::Schema::kDebs2014);
  EXPECT_EQ(debs.speed, 1.5);
  EXPECT_THAT(debs.select, ElementsAre(Pair("house", ElementsAre("0", "1", "2")),
                                       Pair("household", ElementsAre("1", "7")), Pair("plug", ElementsAre("4"))));
  EXPECT_EQ(debs.max_jump, Duration(hours(24 * 7)));
  EXPECT_EQ(debs.future, Duration(minutes(10)));
  EXPECT_EQ(debs.idle_after, Duration(minutes(5)));

  const InputSpec& mapped = fleet.inputs[1];
  EXPECT_EQ(mapped.key, "edge-1/1");
  EXPECT_EQ(mapped.path, "/other/values.csv");
  EXPECT_EQ(mapped.schema, InputSpec::Schema::kMapping);
  EXPECT_EQ(mapped.idle_after, Duration(minutes(1)));
  EXPECT_EQ(mapped.speed, 0);
  const CsvMapping& mapping = mapped.mapping;
  EXPECT_TRUE(mapping.header);
  EXPECT_EQ(mapping.delimiter, ';');
  EXPECT_EQ(mapping.decimal_mark, ',');
  EXPECT_EQ(mapping.time_column, "stamp");
  EXPECT_EQ(mapping.time_format, "%d/%m/%Y %H:%M:%S");
  EXPECT_EQ(mapping.time_zone, "UTC");
  EXPECT_THAT(mapping.missing, ElementsAre("", "NA"));
  ASSERT_EQ(mapping.labels.size(), 2u);
  EXPECT_EQ(mapping.labels[0].label, "house");
  EXPECT_EQ(mapping.labels[0].column, "house_id");
  EXPECT_EQ(mapping.labels[1].column, "3");
  EXPECT_THAT(mapping.constant_labels, ElementsAre(Pair("country", "DE")));
  ASSERT_EQ(mapping.values.size(), 1u);
  EXPECT_EQ(mapping.values[0].metric, "load");
  EXPECT_EQ(mapping.values[0].column, "w1");

  const auto names = [](const RollupSpec& rollup) {
    std::string text;
    for (const WindowSpec& window : rollup.windows) text += to_string(window) + " ";
    return text;
  };
  const RollupSpec& plug = *fleet.rollup("plug_load");
  EXPECT_EQ(plug.slice, Duration(minutes(1)));
  EXPECT_EQ(names(plug), "1m 15m 1d 1h/5m ");
  EXPECT_FALSE(plug.across);
  EXPECT_EQ(plug.emit, Duration(seconds(5)));
  const RollupSpec& house = *fleet.rollup("house_load");
  EXPECT_EQ(house.across, Statistic::kSum);
  EXPECT_EQ(house.of, Statistic::kMean);
  EXPECT_EQ(house.slice, Duration(minutes(1)));
  EXPECT_EQ(names(house), "1m 15m 1d 1h/5m ");
  EXPECT_EQ(fleet.rollup("city_load")->across, Statistic::kMax);
  EXPECT_EQ(names(*fleet.rollup("city_load")), "1h ");
  EXPECT_EQ(fleet.rollup("house_pool")->slice, Duration(minutes(2)));
  EXPECT_THAT(fleet.rollup("house_pool")->by, ElementsAre("house"));

  ASSERT_EQ(fleet.forecasts.size(), 1u);
  EXPECT_EQ(fleet.forecasts[0].model, "debs2014");
  EXPECT_THAT(fleet.forecasts[0].steps, ElementsAre(minutes(1), hours(1), hours(2)));
  EXPECT_EQ(fleet.limits.at("series"), 12);
  EXPECT_EQ(fleet.limits.at("commit_interval_ms"), 200);
  EXPECT_EQ(make_plan(fleet).tables.size(), 4u);
}

// `to` replaces the unique `from` in the good file; the @ in it (dropped) is the place the error must name.
struct Mistake {
  const char* from;
  const char* to;
  const char* message;  // everything after the place
};

void expect_error(const Mistake& mistake) {
  std::string text = replaced(mistake.from, mistake.to);
  const std::size_t at = text.find('@');
  ASSERT_NE(at, std::string::npos) << mistake.to;
  text.erase(at, 1);
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const std::size_t column = at - text.rfind('\n', at - 1);
  const ParsedFleet parsed = parse(text);
  const std::string place = "dir/fleet.toml:" + std::to_string(line) + ":" + std::to_string(column) + ": ";
  EXPECT_FALSE(parsed.fleet) << mistake.to;
  ASSERT_EQ(parsed.errors.size(), 1u) << mistake.to << "\n" << to_string(parsed.errors);
  EXPECT_EQ(to_string(parsed.errors[0]), place + mistake.message);
}

TEST(FleetFile, MistakesInKeysAndValues) {
  const Mistake mistakes[] = {
      {"allowed_lateness = \"2h\"", "@alowed_lateness = \"2h\"",
       "unknown key \"alowed_lateness\" in [[metric]]; did you mean \"allowed_lateness\"?"},
      {"[limits]\nseries", "[limits]\n@colour",
       "unknown key \"colour\" in [limits]; known are \"commit_interval_ms\", \"commit_samples\", \"commit_bytes\", "
       "\"journal_bytes\", \"series\", \"groups\", \"open_rows\", \"line_bytes\", \"outbox_bytes\", \"frame_bytes\", "
       "\"message_bytes\", \"credit_bytes\", ..."},
      {"[limits]\nseries", "[@limit]\nseries", "unknown section \"limit\"; did you mean \"limits\"?"},
      {"[[site]]", "[@site]", "\"site\" is a table; expected sections [[site]], in double brackets"},
      {"[fleet]", "[[@fleet]]", "\"fleet\" is a list; expected one section [fleet]"},
      {"name = \"test\"", "name = @5", "name is 5; expected a text in quotes"},
      {"name = \"test\"", "name = @\"a b\"",
       "name is \"a b\"; expected a name: 1 to 64 letters, digits and _ . - , not beginning with . or -"},
      {"zone = \"Europe/Berlin\"", "zone = @\"Europe/Atlantis\"",
       "unknown time zone \"Europe/Atlantis\"; expected an IANA name such as \"Europe/Berlin\" or \"UTC\""},
      {"[49.87, 8]", "@[91, 8]",
       "location is [91, 8]; expected a latitude of -90 to 90 and a longitude of -180 to 180"},
      {"[49.87, 8]", "@[49.87]", "location is a list; expected [latitude, longitude] in degrees"},
      {"decimals = 2", "decimals = @16", "decimals is 16; expected a whole number of 0 to 15 digits"},
      {"decimals = 2", "decimals = @\"2\"",
       "decimals is \"2\"; expected a whole number of 0 to 15 digits; write it without quotes"},
      {"disorder = \"30s\"", "disorder = @30",
       "disorder is 30; expected a duration in quotes, such as \"90s\"; \"30s\" is 30 seconds"},
      {"disorder = \"30s\"", "disorder = @\"30 s\"",
       "disorder: \"30 s\" is not a duration: unexpected character 3; expected a number and a unit of ns us ms s m h "
       "d, "
       "such as \"90s\" or \"1h30m\""},
      {"disorder = \"30s\"", "disorder = @\"31d\"", "disorder is \"31d\"; expected a duration of 0s to 30d"},
      {"layer = \"cloud\"", "layer = @\"clod\"",
       "layer is \"clod\"; expected \"edge\", \"aggregator\" or \"cloud\"; did you mean \"cloud\"?"},
      {"speed = 1.5", "speed = @-1", "speed is -1; expected a number of 0 to 1000000000 seconds per second"},
      {"speed = 1.5", "speed = @nan", "speed is nan; expected a number of 0 to 1000000000 seconds per second"},
      {"speed = 1.5", "speed = @\"fast\"",
       "speed is \"fast\"; expected a number of 0 to 1000000000 seconds per second; write it without quotes"},
      {"speed = 1.5", "speed = @\"${SPEED}\"",
       "environment variable \"SPEED\" is not set; set it, or give it a default: ${SPEED:-default}"},
      {"speed = 1.5", "speed = @\"${SPEED:-fast}\"",
       "speed is \"fast\"; expected a number of 0 to 1000000000 seconds per second"},
      {"delimiter = \";\"", "delimiter = @\";;\"", "delimiter is \";;\"; expected a text of one ASCII character"},
      {"delimiter = \";\"", "delimiter = @\",\"",
       "delimiter and decimal_mark are the same character; expected two different ones; files with a decimal comma "
       "usually have delimiter = \";\""},
      {"missing = [\"\", \"NA\"]", "missing = [\"\", @7]", "missing is 7; expected a text in quotes"},
      {"series = 12", "series = @0", "series is 0; expected a whole number of 1 to 100000000 series"},
      {"series = 12", "heartbeat_ms = @3000",
       "parent_timeout_ms = 2000 beside heartbeat_ms = 3000; expected parent_timeout_ms above heartbeat_ms"},
      {"\"0..2\"", "@\"2..0\"",
       "select.house is \"2..0\"; expected a range of at most 100000 whole numbers, such as \"0..9\""},
      {"household = [1, \"7\"]", "@flat = 1",
       "select by unknown label \"flat\"; known are \"house\", \"household\", \"plug\""},
      {"\"24h\"", "@\"2d\"",
       "windows: \"2d\" is not a window: above a day there are only the week and the month; expected a duration below "
       "a "
       "day such as \"15m\", \"1d\", \"1w\", \"1mo\", or size/hop such as \"1h/5m\""},
      {"\"24h\"", "@\"steps:1m\"", "windows is \"steps:1m\"; expected a window; steps belong to a [[forecast]]"},
      {"hop = \"5m\" }", "hop = @\"5\" }",
       "hop: \"5\" is not a duration: the unit is missing; expected a number and a unit of ns us ms s m h d, such as "
       "\"90s\" or \"1h30m\""},
  };
  for (const Mistake& mistake : mistakes) expect_error(mistake);
}

TEST(FleetFile, MistakesInNodes) {
  const Mistake mistakes[] = {
      {"\"agg-1\", \"agg-2\"], \"cloud\"]", "@\"ag-1\", \"agg-2\"], \"cloud\"]",
       "unknown parent \"ag-1\"; did you mean \"agg-1\"?"},
      {"\"agg-1\", \"agg-2\"], \"cloud\"]", "\"agg-1\", @\"agg-1\"], \"cloud\"]",
       "parent \"agg-1\" is named twice; expected each parent once"},
      {"[[\"agg-1\", \"agg-2\"], \"cloud\"]", "[@[], \"cloud\"]",
       "parents is a list; expected a group of at least one name"},
      {"[[\"agg-1\", \"agg-2\"], \"cloud\"]", "@[]",
       "\"edge-1\" has no parents; expected at least one node of the layer above; add, for example, parents = "
       "[\"cloud\"]"},
      {"listen = \"127.0.0.1:0\"\nparents = \"cloud\"", "listen = \"127.0.0.1:0\"\nparents = @\"agg-2\"",
       "parents form a cycle: agg-2 -> agg-2; expected parents that lead to the cloud"},
      {"[[node]]\nname = \"agg-2\"\nlayer = \"aggregator\"\nlisten = \"127.0.0.1:0\"\nparents = \"cloud\"",
       "@[[node]]\nname = \"agg-2\"\nlayer = \"aggregator\"\nlisten = \"127.0.0.1:0\"",
       "\"agg-2\" has no parents; expected at least one node of the layer above; add, for example, parents = "
       "[\"cloud\"]"},
      {"site = \"here\"", "site = @\"hire\"", "unknown site \"hire\"; did you mean \"here\"?"},
      {"\"[::1]:7431\"", "@\"0.0.0.0:7431\"",
       "listen: \"0.0.0.0:7431\" is not a loopback address; expected 127.0.0.0/8, [::1] or localhost, since there is "
       "no "
       "TLS yet to protect another"},
      {"\"[::1]:7431\"", "@\"127.0.0.1\"",
       "listen: \"127.0.0.1\" is no address: the port is missing; expected HOST:PORT, such as \"127.0.0.1:7411\" or "
       "\"[::1]:7411\""},
      {"\"[::1]:7431\"", "@\"\"",
       "listen: \"\" is no address: the port is missing; expected HOST:PORT, such as \"127.0.0.1:7411\" or "
       "\"[::1]:7411\""},
      {"\"[::1]:7431\"", "@\"localhost:7421\"",
       "address \"localhost:7421\" is taken; expected an address of its own; \"agg-1\" has it in line 21"},
      {"layer = \"aggregator\"\nlisten = \"127.0.0.1:7421\"",
       "durability = @\"disk\"\nlayer = \"aggregator\"\nlisten = \"127.0.0.1:7421\"",
       "durability is for edges; leave it out: an aggregator keeps nothing on disk, the cloud always does"},
  };
  for (const Mistake& mistake : mistakes) expect_error(mistake);
}

TEST(FleetFile, MistakesInInputs) {
  const Mistake mistakes[] = {
      {"node = \"edge-1\"\nkind = \"csv\"", "node = @\"edge-2\"\nkind = \"csv\"",
       "unknown node \"edge-2\"; did you mean \"edge-1\"?"},
      {"node = \"edge-1\"\nkind = \"csv\"", "node = @\"agg-1\"\nkind = \"csv\"",
       "\"agg-1\" is an aggregator; expected an edge: only edges have inputs"},
      {"node = \"edge-1\"\nkind = \"csv\"", "node = @\"cloud\"\nkind = \"csv\"",
       "\"cloud\" is the cloud; expected an edge: only edges have inputs"},
      {"\"data/plugs.csv.gz\"", "@\"\"", "path is empty; expected the name of a CSV file"},
      {"kind = \"csv\"\npath = \"data/plugs.csv.gz\"", "path = @\"\"",
       "path is empty; expected the name of a CSV file; or add generator = { for = \"1h\" } for made-up data in its "
       "place"},
      {"kind = \"csv\"", "kind = \"csv\"\ngenerator = @{ for = \"1h\" }",
       "generator beside kind = \"csv\"; leave out kind: an empty path then means the generator"},
      {"kind = \"csv\"", "generator = @{ houses = 4 }",
       "generator = { ... } in [[input]] has no \"for\"; add it, for example for = \"1h\""},
      {"kind = \"csv\"", "generator = { for = \"1h\", @hoses = 4 }",
       "unknown key \"hoses\" in generator = { ... } in [[input]]; did you mean \"houses\"?"},
      {"kind = \"csv\"\npath = \"data/plugs.csv.gz\"",
       "kind = \"generator\"\ngenerator = { for = \"1h\" }\npath = @\"x\"",
       "path beside kind = \"generator\"; a generator reads no file"},
      {"kind = \"csv\"", "generator = { for = \"1h\", start = @\"yesterday\" }",
       "start is \"yesterday\"; expected a date and time between the years 1678 and 2262, such as "
       "2013-09-01T00:00:00+02:00"},
      {"kind = \"csv\"", "header = @false",
       "\"header\" beside schema = \"debs2014\"; add schema = \"mapping\", or leave it out"},
      {"format = \"%d/%m/%Y %H:%M:%S\"", "format = @\"unixms\"",
       "format is \"unixms\"; expected unix, unix_ms, unix_us, unix_ns, rfc3339 or a pattern such as \"%Y-%m-%d "
       "%H:%M:%S\"; did you mean \"unix_ms\"?"},
      {"zone = \"UTC\" }", "zone = @\"UTZ\" }",
       "unknown time zone \"UTZ\"; expected an IANA name such as \"Europe/Berlin\" or \"UTC\""},
      {"values = { load = \"w1\" }", "values = { @lod = \"w1\" }", "unknown metric \"lod\"; did you mean \"load\"?"},
      {"values = { load = \"w1\" }", "values = @{}",
       "schema = \"mapping\" without \"values\"; add, for example, values = { load = \"w1\" }"},
      {"time = { column = \"stamp\", format = \"%d/%m/%Y %H:%M:%S\", zone = \"UTC\" }", "time = @\"stamp\"",
       "time is \"stamp\"; expected a table, such as { column = \"timestamp\", format = \"unix\" }"},
      {"country = \"DE\"", "@room = \"DE\"", "label \"room\" is in \"labels\" too; expected each label once"},
      {"room = 3", "room = @0", "labels.room is \"0\"; expected a name of the header line or a number from 1"},
      {"room = 3", "room = @0.5", "labels.room is 0.5; expected a text or a whole number"},
  };
  for (const Mistake& mistake : mistakes) expect_error(mistake);
}

TEST(FleetFile, MistakesInRollups) {
  const Mistake mistakes[] = {
      {"metric = \"load\"\nby", "metric = @\"lod\"\nby", "unknown metric \"lod\"; did you mean \"load\"?"},
      {"from = \"house_load\"", "from = @\"home_load\"", "unknown rollup \"home_load\"; did you mean \"house_load\"?"},
      {"from = \"house_load\"", "metric = \"load\"\nfrom = @\"house_load\"",
       "rollup \"city_load\" has both \"metric\" and \"from\"; expected one of them; leave out metric: it is that of "
       "the "
       "source"},
      {"[[rollup]]\nname = \"city_load\"\nfrom = \"house_load\"", "@[[rollup]]\nname = \"city_load\"",
       "rollup \"city_load\" has neither \"metric\" nor \"from\"; expected one of them"},
      {"name = \"house_load\"\nfrom = \"plug_load\"", "name = \"house_load\"\nfrom = @\"city_load\"",
       "rollups form a cycle: house_load -> city_load -> house_load; expected rollups that lead to a metric"},
      {"from = \"house_load\"\nacross = \"max\"", "from = @\"house_load\"",
       "\"city_load\" pools samples, but \"house_load\" is an across rollup and has none; expected across = \"sum\" "
       "(or "
       "min, max, mean), or a source without across"},
      {"across = \"max\"", "across = \"max\"\nof = @\"mean\"",
       "\"of\" over the across rollup \"house_load\"; leave it out: the value of that rollup is taken"},
      {"across = \"sum\"\nof = \"mean\"", "across = \"sum\"\nof = @\"median\"",
       "of is \"median\"; expected \"mean\", \"sum\", \"min\", \"max\" or \"last\"; did you mean \"mean\"?"},
      {"across = \"max\"", "across = \"max\"\nby = [@\"room\"]",
       "label \"room\" is not one of rollup \"house_load\"; known is \"house\""},
      {"by = [\"house\", \"household\", \"plug\"]", "by = [\"house\", \"household\", @\"plg\"]",
       "no input gives \"load\" the label \"plg\"; did you mean \"plug\"?"},
      {"by = [\"house\", \"household\", \"plug\"]", "by = [\"house\", \"plug\", @\"house\"]",
       "label \"house\" is named twice; expected each label once"},
      {"across = \"max\"", "across = \"max\"\nslice = @\"2m\"",
       "slice is \"2m\"; expected that of rollup \"house_load\", \"1m\"; leave it out"},
      {"slice = \"2m\"\nwindows = [\"1h\"]", "slice = @\"90s\"\nwindows = [\"1h\"]",
       "slice is \"90s\"; expected a multiple of the slice of rollup \"plug_load\", \"1m\""},
      {"slice = \"2m\"\nwindows = [\"1h\"]", "slice = \"2m\"\nwindows = [@\"15m\"]",
       "window \"15m\" is not made of slices of \"2m\"; expected a multiple of the slice"},
      {"slice = \"2m\"\nwindows = [\"1h\"]", "slice = \"2m\"\nwindows = [\"1h\", @\"60m\"]",
       "window \"1h\" is named twice; expected each window once"},
      {"slice = \"2m\"\nwindows = [\"1h\"]", "slice = \"2m\"\nwindows = [@\"1h/5m\"]",
       "window \"1h/5m\" does not hop by slices of \"2m\"; expected a hop that is a multiple of the slice"},
      {"slice = \"2m\"\nwindows = [\"1h\"]", "slice = \"2m\"\nwindows = [@\"40d/1d\"]",
       "window \"40d/1d\" overlaps too often; expected a size of at most 31d and at most 1440 times the hop"},
      {"slice = \"2m\"\nwindows = [\"1h\"]", "slice = @\"7m\"\nwindows = [\"1h\"]",
       "slice is \"7m\"; expected one that divides 24 h, such as \"10s\", \"1m\" or \"15m\""},
      {"slice = \"2m\"\nwindows = [\"1h\"]", "slice = @\"2h\"\nwindows = [\"1h\"]",
       "slice is \"2h\"; expected one that divides the offsets of \"Europe/Berlin\" from UTC (+01:00, +02:00); the "
       "longest one is \"1h\""},
      {"\"60m\", \"120m\"]", "\"60m\", @\"50m\"]", "step is \"50m\"; expected one that divides 24 h, such as \"15m\""},
      {"\"60m\", \"120m\"]", "\"60m\", @\"1h\"]", "step \"1h\" is named twice; expected each step once"},
      {"\"60m\", \"120m\"]", "\"60m\", @\"0s\"]", "a step of no length; expected one that divides 24 h"},
      {"of = [\"plug_load\", \"house_load\"]", "of = [\"plug_load\", @\"house_lod\"]",
       "unknown rollup \"house_lod\"; did you mean \"house_load\"?"},
      {"of = [\"plug_load\", \"house_load\"]", "of = [\"plug_load\", @\"plug_load\"]",
       "a second forecast of \"plug_load\"; expected one forecast of a rollup and model; put all steps into one "
       "[[forecast]]"},
      {"name = \"work\"", "name = @\"load\"",
       "a second metric \"load\"; expected one metric of a name; the first is in line 36"},
  };
  for (const Mistake& mistake : mistakes) expect_error(mistake);
}

// Mistakes that have more than one consequence: all are reported, in the order of the file.
TEST(FleetFile, ReportsAllErrorsAtOnce) {
  const auto errors = [](const std::string& text) { return to_string(parse(text).errors); };
  EXPECT_EQ(errors(replaced("parents = [\"cloud\"]", "parents = [\"edge-1\"]")),
            "dir/fleet.toml:15:11: parents form a cycle: edge-1 -> agg-1 -> edge-1; expected parents that lead to the "
            "cloud\n"
            "dir/fleet.toml:22:12: parent \"edge-1\" is an edge; expected an aggregator or the cloud");
  EXPECT_EQ(errors(replaced("listen = \"127.0.0.1:7421\"\nparents = [\"cloud\"]",
                            "listen = \"127.0.0.1:7421\"\nparents = [\"agg-2\"]")),
            "");
  EXPECT_EQ(errors(replaced("listen = \"127.0.0.1:0\"\nparents = \"cloud\"", "parents = [\"agg-1\", \"cloud\"]")),
            "dir/fleet.toml:15:22: parent \"agg-2\" has no \"listen\"; expected an address its children can reach; add "
            "listen = \"127.0.0.1:7410\" to \"agg-2\" in line 24");
  EXPECT_EQ(errors(replaced("listen = \"[::1]:7431\"", "listen = \"[::1]:7431\"\nparents = [\"agg-1\"]")),
            "dir/fleet.toml:22:11: parents form a cycle: agg-1 -> cloud -> agg-1; expected parents that lead to the "
            "cloud\n"
            "dir/fleet.toml:34:11: the cloud has parents; expected none: everything leads to the cloud");
  EXPECT_EQ(errors(replaced("layer = \"cloud\"", "layer = \"aggregator\"")),
            "dir/fleet.toml: the fleet has no cloud; expected exactly one [[node]] with layer = \"cloud\"\n"
            "dir/fleet.toml:30:1: \"cloud\" has no parents; expected at least one node of the layer above; add, for "
            "example, parents = [\"cloud\"]");
  EXPECT_EQ(errors(replaced("layer = \"aggregator\"\nlisten = \"127.0.0.1:0\"\nparents = \"cloud\"",
                            "layer = \"cloud\"\nlisten = \"127.0.0.1:0\"")),
            "dir/fleet.toml:31:9: \"cloud\" is a second cloud; expected exactly one node of layer cloud");
  EXPECT_EQ(errors(std::string(kGood) + "[[node]]\nname = \"edge-2\"\nlayer = \"edge\"\nparents = [\"cloud\"]\n"),
            "dir/fleet.toml:99:1: edge \"edge-2\" has no input; expected at least one [[input]]; add an [[input]] with "
            "node = \"edge-2\"");
  EXPECT_EQ(errors(replaced("name = \"agg-2\"", "name = \"agg-1\"")),
            "dir/fleet.toml:15:22: unknown parent \"agg-2\"; did you mean \"agg-1\"?\n"
            "dir/fleet.toml:25:8: a second node \"agg-1\"; expected one node of a name; the first is in line 19");
  EXPECT_EQ(errors(replaced("across = \"sum\"\nof = \"mean\"", "of = \"mean\"")),
            "dir/fleet.toml:77:6: \"of\" without \"across\"; it says which value each group gives to across = \"sum\" "
            "(or min, max, mean)");
  EXPECT_EQ(errors(replaced("\"60m\", \"120m\"]", "\"30s\"]")),
            "dir/fleet.toml:95:16: step is \"30s\"; expected a multiple of the slice of rollup \"plug_load\", \"1m\"");
  // A window that is inherited and does not fit the rollup's own slice is the slice's fault.
  EXPECT_EQ(errors(replaced("slice = \"2m\"\nwindows = [\"1h\"]", "slice = \"2m\"")),
            "dir/fleet.toml:90:9: window \"1m\" is not made of slices of \"2m\"; expected a multiple of the slice");
  EXPECT_EQ(
      errors(replaced("house = \"house_id\", room = 3 }", "house = 1, room = \"r\" }\nheader = false")),
      "dir/fleet.toml:57:19: column is \"stamp\" in a file without a header line; expected the number of a column, "
      "from 1\n"
      "dir/fleet.toml:58:30: labels.room is \"r\" in a file without a header line; expected the number of a column, "
      "from 1\n"
      "dir/fleet.toml:61:19: values.load is \"w1\" in a file without a header line; expected the number of a "
      "column, from 1");
}

TEST(FleetFile, AnEmptyFileLacksTheEssentials) {
  EXPECT_EQ(to_string(parse("").errors),
            "dir/fleet.toml: there is no section [fleet]; begin the file with [fleet] and name = \"...\"\n"
            "dir/fleet.toml: the fleet has no cloud; expected exactly one [[node]] with layer = \"cloud\"");
  EXPECT_FALSE(parse("\xEF\xBB\xBF").fleet);
  // A section tells all that it lacks.
  EXPECT_THAT(to_string(parse("[fleet]\nname='x'\n[[node]]\n").errors),
              testing::AllOf(HasSubstr("3:1: [[node]] has no \"name\""), HasSubstr("3:1: [[node]] has no \"layer\"")));
}

TEST(FleetFile, SyntaxErrorsHaveAPlace) {
  EXPECT_THAT(to_string(parse("[fleet]\nname = \n").errors), HasSubstr("dir/fleet.toml:2:8: "));
  EXPECT_THAT(to_string(parse("[fleet]\nname = \"a\"\nname = \"b\"\n").errors), HasSubstr("dir/fleet.toml:3:"));
  EXPECT_EQ(to_string(parse("[fleet]\nname = \"\xff\"\n").errors),
            "dir/fleet.toml:2:9: a byte that is not UTF-8; expected UTF-8 text");
  EXPECT_EQ(to_string(parse("x = " + std::string(20000, '1')).errors),
            "dir/fleet.toml:1:1: the line has 20004 bytes; expected at most 16384");
  EXPECT_EQ(to_string(parse(std::string((1 << 20) + 1, '\n')).errors),
            "dir/fleet.toml: the file has 1048577 bytes; expected at most 1048576");
  std::string deep = "x = ";
  for (int i = 0; i < 100; ++i) deep += '[';
  for (int i = 0; i < 100; ++i) deep += ']';
  EXPECT_THAT(to_string(parse(deep).errors), HasSubstr("nested too deep; expected at most 16 levels"));
}

TEST(FleetFile, EnvironmentVariables) {
  const auto input = [](const std::string& lines, std::map<std::string, std::string> environment) {
    const ParsedFleet parsed =
        parse(replaced("kind = \"csv\"\npath = \"data/plugs.csv.gz\"\nspeed = 1.5", lines), std::move(environment));
    EXPECT_TRUE(parsed.fleet) << to_string(parsed.errors);
    return parsed.fleet ? parsed.fleet->inputs[0] : InputSpec();
  };
  const std::string lines =
      "path = \"${FILE:-}\"\nspeed = \"${SPEED:-2.5}\"\ngenerator = { for = \"1h\", houses = \"${N:-3}\" }";
  EXPECT_EQ(input(lines, {}).kind, InputSpec::Kind::kGenerator);
  EXPECT_EQ(input(lines, {}).speed, 2.5);
  EXPECT_EQ(input(lines, {}).generator.houses, 3);
  EXPECT_EQ(input(lines, {{"FILE", ""}}).kind, InputSpec::Kind::kGenerator);
  const InputSpec csv = input(lines, {{"FILE", "/a/${b}.csv"}, {"SPEED", "0"}, {"N", "12"}});
  EXPECT_EQ(csv.kind, InputSpec::Kind::kCsv);
  EXPECT_EQ(csv.path, "/a/${b}.csv");  // a value is not looked into again
  EXPECT_EQ(csv.speed, 0);
  EXPECT_EQ(csv.generator.houses, 12);
  EXPECT_EQ(input("path = \"$$HOME/${A}-${B_2:-x}.csv\"", {{"A", "a"}}).path, "dir/$HOME/a-x.csv");

  const auto error = [](const std::string& path) {
    return to_string(parse(replaced("data/plugs.csv.gz", path)).errors);
  };
  const std::string place = "dir/fleet.toml:48:8: ";
  EXPECT_EQ(error("$HOME"), place +
                                "a dollar sign that begins no variable; expected ${NAME} or ${NAME:-default}; write $$ "
                                "for a dollar sign");
  EXPECT_EQ(error("${HOME"),
            place + "\"${\" without \"}\"; expected ${NAME} or ${NAME:-default}; write $$ for a dollar sign");
  EXPECT_EQ(error("${1}"), place +
                               "\"${1}\" is no variable; expected ${NAME} or ${NAME:-default}, where NAME is of "
                               "letters, digits and _");
  EXPECT_EQ(error("${A:+b}"), place +
                                  "\"${A:+b}\" is no variable; expected ${NAME} or ${NAME:-default}, where NAME is of "
                                  "letters, digits and _");
}

TEST(FleetFile, Generator) {
  const ParsedFleet parsed = parse(replaced("kind = \"csv\"\npath = \"data/plugs.csv.gz\"",
                                            "kind = \"generator\"\ngenerator = { seed = 7, for = \"90m\" }"));
  ASSERT_TRUE(parsed.fleet) << to_string(parsed.errors);
  const GeneratorSpec& generator = parsed.fleet->inputs[0].generator;
  EXPECT_EQ(generator.houses, 40);
  EXPECT_EQ(generator.seed, 7u);
  EXPECT_EQ(generator.length, Duration(minutes(90)));
  EXPECT_EQ(to_ns(generator.start), 1'377'986'400'000'000'000);  // 2013-08-31T22:00:00Z

  for (const char* start : {"2013-09-01T00:00:00+02:00", "\"2013-09-01T00:00:00+02:00\"", "2013-09-01T00:00:00",
                            "2013-09-01", "\"2013-08-31 22:00:00Z\""}) {
    const ParsedFleet other = parse(replaced("kind = \"csv\"\npath = \"data/plugs.csv.gz\"",
                                             "generator = { for = \"90m\", start = " + std::string(start) + " }"));
    ASSERT_TRUE(other.fleet) << to_string(other.errors);
    EXPECT_EQ(other.fleet->inputs[0].generator.start, generator.start) << start;
  }
}

TEST(FleetFile, RollupsWithoutWindowsHaveOneOfTheSlice) {
  const ParsedFleet parsed =
      parse(replaced("windows = [\"1m\", \"15m\", \"24h\", { size = \"1h\", hop = \"5m\" }]", "slice = \"30s\""));
  ASSERT_TRUE(parsed.fleet) << to_string(parsed.errors);
  EXPECT_EQ(to_string(parsed.fleet->rollup("plug_load")->windows.at(0)), "30s");
  EXPECT_EQ(to_string(parsed.fleet->rollup("house_load")->windows.at(0)), "30s");
  EXPECT_EQ(parsed.fleet->rollup("house_load")->slice, Duration(seconds(30)));
}

TEST(FleetFile, LoadsAndChecksFiles) {
  auto folder = base::TemporaryDirectory::create("fleet-test");
  ASSERT_TRUE(folder.ok());
  const auto path = folder->path() / "fleet.toml";
  const auto none = [](std::string_view) -> std::optional<std::string> { return std::nullopt; };
  EXPECT_THAT(std::string(load_fleet(path, none).status().message()), HasSubstr("the fleet file cannot be read"));

  ASSERT_TRUE(base::write_file_atomically(path, kGood).ok());
  const auto fleet = load_fleet(path, none);
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  const std::string missing(check_files(*fleet).message());
  EXPECT_THAT(missing, HasSubstr("input edge-1/0: \"" + (folder->path() / "data/plugs.csv.gz").string()));
  EXPECT_THAT(missing, HasSubstr("\ninput edge-1/1: \"/other/values.csv\": there is no such file"));
  EXPECT_TRUE(check_files(*fleet, "another").ok());
  ASSERT_TRUE(base::make_directories(folder->path() / "data").ok());
  ASSERT_TRUE(base::write_file_atomically(folder->path() / "data/plugs.csv.gz", "").ok());
  EXPECT_EQ(std::string(check_files(*fleet).message()),
            "input edge-1/1: \"/other/values.csv\": there is no such file; expected a CSV file, plain, .gz or .zst");

  ASSERT_TRUE(base::write_file_atomically(path, "[fleet]\nnam = 'x'\n").ok());
  EXPECT_THAT(std::string(load_fleet(path, none).status().message()),
              HasSubstr(path.string() + ":2:1: unknown key \"nam\" in [fleet]; did you mean \"name\"?"));
}

}  // namespace
}  // namespace orla::model
