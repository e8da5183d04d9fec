#include "function/wasm_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"

namespace orla::function {
namespace {

using ::testing::HasSubstr;

class Cache : public ::testing::Test {
 protected:
  Cache() : place_(*base::TemporaryDirectory::create("orla-cache")), folder_(place_.path() / "modules") {}
  WasmCache open(std::string engine = "engine 1") { return *WasmCache::open(folder_, std::move(engine)); }

  base::TemporaryDirectory place_;
  const std::filesystem::path folder_;
  const base::Sha256 module_ = base::sha256("module");
};

TEST_F(Cache, FindsWhatWasKept) {
  const WasmCache cache = open();
  EXPECT_EQ(cache.find(module_).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(cache.keep(module_, "compiled").ok());
  const auto found = cache.find(module_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, cache.path_of(module_));
  EXPECT_EQ(base::read_file(*found, 1000)->substr(0, 8), "compiled");
  EXPECT_EQ(cache.find(base::sha256("other")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(Cache, AnotherEngineFindsNothing) {
  ASSERT_TRUE(open().keep(module_, "compiled").ok());
  EXPECT_EQ(open("engine 2").find(module_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(Cache, EveryChangedByteIsNoticed) {
  const std::string file = seal_compiled("some compiled code", module_, "engine 1");
  EXPECT_TRUE(check_compiled(file, module_, "engine 1").ok());
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string changed = file;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_EQ(check_compiled(changed, module_, "engine 1").code(), absl::StatusCode::kDataLoss) << i;
    EXPECT_FALSE(check_compiled(file.substr(0, i), module_, "engine 1").ok()) << i;
  }
  EXPECT_FALSE(check_compiled(file + "x", module_, "engine 1").ok());
  EXPECT_FALSE(check_compiled(file, base::sha256("other"), "engine 1").ok());
  EXPECT_FALSE(check_compiled(file, module_, "engine 2").ok());
}

TEST_F(Cache, TakesNoFileThatOthersMayWrite) {
  const WasmCache cache = open();
  ASSERT_TRUE(cache.keep(module_, "compiled").ok());
  ASSERT_EQ(::chmod(cache.path_of(module_).c_str(), 0666), 0);
  EXPECT_EQ(cache.find(module_).status().code(), absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  const auto reopened = WasmCache::open(folder_, "engine 1");
  EXPECT_EQ(reopened.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(reopened.status().message()), HasSubstr("chmod go-w"));
}

TEST_F(Cache, ItsFolderIsThisUsersAlone) {
  open();
  struct stat about {};
  ASSERT_EQ(::stat(folder_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700U);
}

}  // namespace
}  // namespace orla::function
