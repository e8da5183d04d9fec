#include "base/environment.h"

#include <gtest/gtest.h>

namespace orla::base {
namespace {

TEST(Environment, TellsUnsetFromEmpty) {
  const FixedEnvironment fixed({{"A", "1"}, {"EMPTY", ""}});
  EXPECT_EQ(fixed.get("A"), "1");
  EXPECT_EQ(fixed.get("EMPTY"), "");
  EXPECT_EQ(fixed.get("B"), std::nullopt);
}

TEST(Environment, TheSystemsOwn) {
  const SystemEnvironment system;
  EXPECT_TRUE(system.get("PATH").has_value());
  EXPECT_EQ(system.get("ORLA_NO_SUCH_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace orla::base
