#include "base/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

namespace orla::base {
namespace {

TEST(OpenFiles, AreRaisedAsFarAsIsAllowed) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{std::min<rlim_t>(100, before.rlim_cur), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const std::uint64_t limit = raise_open_files();
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, limit);
  EXPECT_EQ(limit, std::min<rlim_t>(before.rlim_max, kMostOpenFiles));
  EXPECT_EQ(after.rlim_max, before.rlim_max);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace orla::base
