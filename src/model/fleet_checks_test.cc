// One mistake at a time in a fleet file: the place and the message.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/fleet_file.h"
#include "model/fleet_file_sample.h"

namespace orla::model {
namespace {

using sample::parse;
using sample::replaced;

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

TEST(FleetChecks, KeysAndValues) {
  const Mistake mistakes[] = {
      {"allowed_lateness = \"2h\"", "@alowed_lateness = \"2h\"",
       "unknown key \"alowed_lateness\" in [[metric]]; did you mean \"allowed_lateness\"?"},
      {"[limits]\nseries", "[limits]\n@colour",
       "unknown key \"colour\" in [limits]; known are \"commit_interval_ms\", \"commit_samples\", \"commit_bytes\", "
       "\"journal_bytes\", \"series\", \"groups\", \"open_rows\", \"outbox_bytes\", \"frame_bytes\", "
       "\"credit_bytes\", \"heartbeat_ms\", \"parent_timeout_ms\", ..."},
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

TEST(FleetChecks, Nodes) {
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
      {"durability = \"memory\"", "fsync = @\"2m\"",
       "fsync is \"2m\"; expected on, off, or a duration of 1ms to 1m such as \"500ms\""},
      {"durability = \"memory\"", "durability = \"memory\"\nfsync = @\"off\"",
       "fsync is for edges with durability = \"disk\"; leave it out"},
      {"layer = \"aggregator\"\nlisten = \"127.0.0.1:7421\"",
       "shards = @2\nlayer = \"aggregator\"\nlisten = \"127.0.0.1:7421\"",
       "shards is for edges; leave it out: only an edge's engine is cut into parts"},
      {"layer = \"aggregator\"\nlisten = \"127.0.0.1:7421\"",
       "outbox_full = @\"reject\"\nlayer = \"aggregator\"\nlisten = \"127.0.0.1:7421\"",
       "outbox_full is for edges; leave it out: aggregators hold what they are given credit for"},
  };
  for (const Mistake& mistake : mistakes) expect_error(mistake);
}

TEST(FleetChecks, Inputs) {
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

TEST(FleetChecks, Rollups) {
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
      {"across = \"sum\"\nof = \"mean\"", "across = \"sum\"\nkeep = @\"raw\"",
       "keep = \"raw\" with across, in rollup \"house_load\"; expected a rollup without across; put it into a rollup "
       "that pools the samples of the metric"},
      {"slice = \"2m\"\nwindows = [\"1h\"]", "slice = \"2m\"\nwindows = [\"1h\"]\nkeep = @\"raw\"",
       "keep = \"raw\" with from, in rollup \"house_pool\"; expected a rollup with metric; samples are those of a "
       "metric: put it into the rollup that reads it"},
      {"emit = \"5s\"", "emit = \"5s\"\nkeep = @\"everything\"",
       "keep is \"everything\"; expected \"partials\" or \"raw\""},
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
      {"emit = \"5s\"", "quantiles = @3", "quantiles is 3; expected true or false"},
      {"emit = \"5s\"", "distinct = [\"plug\", @\"plug\"]", "label \"plug\" is named twice; expected each label once"},
      {"emit = \"5s\"", "distinct = [@\"plugs\"]",
       "no input gives \"load\" the label \"plugs\"; did you mean \"plug\"?"},
      {"slice = \"2m\"", "slice = \"2m\"\ndistinct = [@\"plugs\", \"house\"]",
       "no input gives \"load\" the label \"plugs\"; did you mean \"plug\"?"},
      {"of = \"mean\"", "of = \"mean\"\nquantiles = true\ndistinct = @[\"plug\"]",
       "\"distinct\" with \"across\"; it counts series by their samples, which an across rollup does not see: ask a "
       "rollup without across"},
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

}  // namespace
}  // namespace orla::model
