// Both example fleets, as they are, on their own ports, for a few seconds.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/file_descriptor.h"
#include "model/fleet_file.h"
#include "tests/fleet_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;

// Empty when `address` of this machine can be bound.
std::string taken(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return "";
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &where.sin_addr);
  const base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 ? "" : address;
}

class Examples : public ::testing::TestWithParam<const char*> {};

TEST_P(Examples, RunAndVerify) {
  const std::filesystem::path file = source_dir() / "examples" / GetParam() / "fleet.toml";
  const absl::StatusOr<model::Fleet> fleet =
      model::load_fleet(file, [](std::string_view) { return std::optional<std::string>(); });
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  for (const model::NodeSpec& node : fleet->nodes) {
    for (const std::string& address : {node.listen, node.http}) {
      if (!taken(address).empty()) GTEST_SKIP() << "another program has " << address << ", a port of this example";
    }
  }
  base::ProcessSpec spec;
  spec.argv = {program(), "up", file.string(), "--for", "5s", "--verify", "--json"};
  spec.environment = {{"ORLA_SPEED", ""}, {"ORLA_FOR", "4m"}, {"ORLA_DEBS2014", ""}};
  const absl::StatusOr<base::Finished> ended = base::run_to_end(spec, std::chrono::seconds(90));
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->status.code, 0) << ended->errors;
  const std::vector<std::string> lines = lines_of(ended->output);
  ASSERT_EQ(lines.size(), 2u) << ended->output;
  const json summary = json::parse(lines.back());
  EXPECT_EQ(summary.at("verified"), true) << summary;
  EXPECT_EQ(summary.at("windows_different"), 0);
  EXPECT_EQ(summary.at("rejected"), 0);
  EXPECT_GT(summary.at("windows_compared").get<int>(), 1000);
  EXPECT_FALSE(summary.at("forecasts").empty());
}

INSTANTIATE_TEST_SUITE_P(All, Examples, ::testing::Values("smart-grid", "debs2014"),
                         [](const auto& info) { return info.index == 0 ? "smart_grid" : "debs2014"; });

}  // namespace
}  // namespace orla::behaviour
