#include "model/fleet_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "model/fleet_file_sample.h"
#include "model/plan.h"

namespace orla::model {
namespace {

using sample::kGood;
using sample::parse;
using sample::replaced;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

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
  const ParsedFleet sketched =
      parse(replaced("slice = \"2m\"", "slice = \"2m\"\nquantiles = true\ndistinct = [\"plug\"]"));
  ASSERT_TRUE(sketched.fleet) << to_string(sketched.errors);
  EXPECT_TRUE(sketched.fleet->rollup("house_pool")->quantiles);
  EXPECT_THAT(sketched.fleet->rollup("house_pool")->distinct, ElementsAre("plug"));
  EXPECT_FALSE(sketched.fleet->rollup("plug_load")->quantiles);  // a source's is its own

  ASSERT_EQ(fleet.forecasts.size(), 1u);
  EXPECT_EQ(fleet.forecasts[0].model, "debs2014");
  EXPECT_THAT(fleet.forecasts[0].steps, ElementsAre(minutes(1), hours(1), hours(2)));
  EXPECT_EQ(fleet.limits.at("series"), 12);
  EXPECT_EQ(fleet.limits.at("commit_interval_ms"), 200);
  EXPECT_EQ(make_plan(fleet).tables.size(), 4u);
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
  EXPECT_THAT(to_string(parse("[/fleet]\n").errors), HasSubstr("dir/fleet.toml:1:2: "));
  EXPECT_THAT(to_string(parse("[fleet \uFDFF]\n").errors), HasSubstr("dir/fleet.toml:1:8: "));
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
  ASSERT_TRUE(base::remove_tree(folder->path() / "data/plugs.csv.gz").ok());
  ASSERT_EQ(::mkfifo((folder->path() / "data/plugs.csv.gz").c_str(), 0600), 0);
  EXPECT_THAT(std::string(check_files(*fleet).message()),
              HasSubstr("plugs.csv.gz\": it is a pipe or socket; expected"));

  ASSERT_TRUE(base::write_file_atomically(path, "[fleet]\nnam = 'x'\n").ok());
  EXPECT_THAT(std::string(load_fleet(path, none).status().message()),
              HasSubstr(path.string() + ":2:1: unknown key \"nam\" in [fleet]; did you mean \"name\"?"));
}

}  // namespace
}  // namespace orla::model
