#include "function/spec_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "function/secret_files.h"

namespace orla::function {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KeepingLogger final : public base::Logger {
 public:
  bool enabled(base::LogLevel) const override { return true; }
  void write(base::LogLevel, std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

Deployed full() {
  Deployed deployed;
  FunctionSpec& spec = deployed.spec;
  spec.key = {"echo", "other"};
  spec.image = "native/echo";
  spec.env_process = "cat -";
  spec.environment = {{"A", "1"}, {"B", "\u00e4 \"x\"\n"}};
  spec.constraints = {"c"};
  spec.secrets = {"s1", "s2"};
  spec.labels = {{"l", "v"}};
  spec.annotations = {{"a", ""}};
  spec.limits = {.memory = "1Mi", .cpu = ""};
  spec.requests = {.memory = "", .cpu = "1"};
  spec.read_only_root = true;
  deployed.replicas = 7;
  deployed.created = base::WallTime(std::chrono::nanoseconds(1'234'567'890'123'456'789));
  return deployed;
}

TEST(DeployedFile, ReadsBackWhatWasWritten) {
  Deployed bare;
  bare.spec.key.name = "x";
  for (const Deployed& deployed : {full(), bare}) {
    const auto again = decode_deployed(encode_deployed(deployed));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, deployed);
  }
}

TEST(DeployedFile, EveryChangedByteIsFound) {
  const std::string text = encode_deployed(full());
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    std::string bad = text;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    const auto read = decode_deployed(bad);
    EXPECT_TRUE(!read.ok() || *read == full()) << i;
    EXPECT_FALSE(decode_deployed(text.substr(0, i)).ok()) << i;
  }
}

TEST(SpecFiles, OneDamagedFileIsSetAsideAndTheOthersGoOn) {
  const auto place = *base::TemporaryDirectory::create("orla-specs");
  auto files = SpecFiles::open(place.path() / "specs");
  ASSERT_TRUE(files.ok());
  Deployed a = full();
  a.spec.key.name = "a";
  Deployed b = full();
  b.spec.key.name = "b";
  for (const Deployed& d : {a, b, full()}) ASSERT_TRUE(files->save(d).ok());
  ASSERT_TRUE(files->remove(full().spec.key).ok());
  const auto path = place.path() / "specs" / "a.other.json";
  std::string text = *base::read_file(path, kMaxSpecBytes);
  text[text.size() / 2] ^= 4;
  ASSERT_TRUE(base::write_file_atomically(path, text).ok());
  // A file under another's name is not taken either.
  ASSERT_TRUE(base::write_file_atomically(place.path() / "specs" / "c.other.json", encode_deployed(b)).ok());
  KeepingLogger log;
  const auto loaded = files->load(log);
  ASSERT_TRUE(loaded.ok());
  EXPECT_THAT(*loaded, ElementsAre(b));
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("a.other.json\" cannot be taken up"), HasSubstr("function b.other")));
  EXPECT_EQ(*base::read_file(place.path() / "specs" / ".damaged-a.other.json", kMaxSpecBytes), text);
  KeepingLogger again;
  EXPECT_EQ(files->load(again)->size(), 1u);
  EXPECT_TRUE(again.lines.empty());
}

mode_t mode_of(const std::filesystem::path& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 ? about.st_mode & 0777 : 0;
}

TEST(SecretFiles, KeepsAndGivesThemWithTheirModes) {
  const auto place = *base::TemporaryDirectory::create("orla-secrets");
  base::SilentLogger log;
  const SecretFiles::Limits limits{.secrets = 2, .bytes = 10};
  auto files = *SecretFiles::open(place.path() / "secrets", limits, log);
  const FunctionKey key{"a.b_C", "other"};
  ASSERT_TRUE(files->add(key, std::string("\0x", 2)).ok());
  EXPECT_EQ(mode_of(place.path() / "secrets" / "a.b_C.other"), 0600u);
  EXPECT_EQ(mode_of(place.path() / "secrets" / "given" / "a.b_C.other"), 0400u);
  EXPECT_EQ(files->add({"b", "other"}, std::string(11, 'x')).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(files->add({"b", "other"}, "1234567890").ok());
  EXPECT_EQ(files->add({"c", "other"}, "").code(), absl::StatusCode::kResourceExhausted);
  for (const std::string_view bad : {"", "..", "a/b", ".a", "a.", "a..b", "a b", "\u00e4"}) {
    EXPECT_EQ(files->add({std::string(bad), "other"}, "").code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  ASSERT_TRUE(files->remove({"b", "other"}).ok());
  files.reset();
  files = *SecretFiles::open(place.path() / "secrets", limits, log);
  EXPECT_THAT(files->list(""), ElementsAre(key));
  const auto lease = *files->lease("other", {"a.b_C", "a.b_C"});
  ASSERT_EQ(lease->files().size(), 1u);
  EXPECT_EQ(*base::read_file(lease->files()[0].second, 10), std::string("\0x", 2));
  EXPECT_FALSE(files->lease("other", {"b"}).ok());
}

TEST(SecretFiles, WhatIsRemovedWhileReplicasEndStaysReadableForThem) {
  const auto place = *base::TemporaryDirectory::create("orla-secrets");
  base::SilentLogger log;
  const auto files = *SecretFiles::open(place.path() / "secrets", {}, log);
  const FunctionKey key{"a", "other"};
  ASSERT_TRUE(files->add(key, "1").ok());
  auto lease = *files->lease("other", {"a"});
  const auto file = lease->files()[0].second;
  EXPECT_EQ(files->remove(key).code(), absl::StatusCode::kFailedPrecondition);
  lease->let_go();
  EXPECT_TRUE(files->remove(key).ok());
  EXPECT_TRUE(files->list("").empty());
  EXPECT_FALSE(files->lease("other", {"a"}).ok());
  EXPECT_EQ(files->change(key, "2").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(base::exists(file));
  lease.reset();
  EXPECT_FALSE(base::exists(file));
}

}  // namespace
}  // namespace orla::function
