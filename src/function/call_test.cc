#include "function/call.h"

#include <gtest/gtest.h>

namespace orla::function {
namespace {

TEST(FindHeader, ComparesWithoutCaseAndTakesTheFirst) {
  const Headers headers = {{"X-A", "1"}, {"x-a", "2"}};
  EXPECT_EQ(find_header(headers, "x-A"), "1");
  EXPECT_EQ(find_header(headers, "x-b"), std::nullopt);
}

TEST(Cancellation, TellsEachSubscriberOnceAndKeepsTheFirstReason) {
  Cancellation cancellation;
  int first = 0;
  int gone = 0;
  const Cancellation::Subscription stays(cancellation, [&] { ++first; });
  {
    const Cancellation::Subscription leaves(cancellation, [&] { ++gone; });
  }
  cancellation.cancel(CancelReason::kTimeout);
  cancellation.cancel(CancelReason::kClientGone);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(gone, 0);
  EXPECT_EQ(cancellation.reason(), CancelReason::kTimeout);
}

TEST(Cancellation, WhoComesLaterIsToldAtOnce) {
  Cancellation cancellation;
  cancellation.cancel(CancelReason::kCancelled);
  int told = 0;
  const Cancellation::Subscription late(cancellation, [&] { ++told; });
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace orla::function
