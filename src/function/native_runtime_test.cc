#include "function/native_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/sha256.h"
#include "function/call_for_test.h"

namespace orla::function {
namespace {

using ::testing::HasSubstr;

struct NativeForTest {
  explicit NativeForTest(const char* name) { spec.image = name; }
  absl::Status start() {
    absl::StatusOr<std::unique_ptr<Module>> loaded = runtime.load(spec);
    if (!loaded.ok()) return loaded.status();
    module = *std::move(loaded);
    Cancellation cancellation;
    absl::StatusOr<std::unique_ptr<Instance>> started = module->start("n-1", base::SteadyTime::max(), cancellation);
    if (!started.ok()) return started.status();
    instance = *std::move(started);
    return absl::OkStatus();
  }
  // Status and body.
  std::pair<int, std::string> ask(std::string body, std::string path, std::string query, Headers headers = {}) {
    CallForTest call(std::move(body));
    call.head.path = std::move(path);
    call.head.query = std::move(query);
    call.head.headers = std::move(headers);
    last = call.run(*instance);
    return {call.response.status(), call.response.body()};
  }
  base::SystemClock clock;
  NativeRuntime runtime{clock, nullptr};
  ModuleSpec spec;
  std::unique_ptr<Module> module;
  std::unique_ptr<Instance> instance;
  CallResult last;
};

std::string raw(std::uint64_t rows, std::uint64_t columns, const std::vector<double>& elements) {
  std::string bytes(16 + 8 * elements.size(), '\0');
  std::memcpy(bytes.data(), &rows, 8);
  std::memcpy(bytes.data() + 8, &columns, 8);
  if (!elements.empty()) std::memcpy(bytes.data() + 16, elements.data(), 8 * elements.size());
  return bytes;
}
std::vector<double> elements_of(const std::string& bytes) {
  std::vector<double> elements((bytes.size() - 16) / 8);
  if (!elements.empty()) std::memcpy(elements.data(), bytes.data() + 16, 8 * elements.size());
  return elements;
}
const Headers kRaw{{"Content-Type", "application/octet-stream"}};

TEST(NativeEcho, GivesBackWhatItGets) {
  NativeForTest fn("echo");
  ASSERT_TRUE(fn.start().ok());
  EXPECT_EQ(fn.ask("hello", "/", "", {{"Content-Type", "text/x"}}), std::pair(200, std::string("hello")));
  CallForTest call;
  RepeatedBody body(std::string(1000, 'e'), 1000);
  EXPECT_EQ(call.run(*fn.instance, body).end, CallEnd::kDone);
  EXPECT_EQ(call.response.body(), std::string(1'000'000, 'e'));
}

// The values of https://oeis.org/A006880 (primes below 10^n), which counts up to and including; 10^n is no prime.
TEST(NativePrimes, CountsAsTheTablesSay) {
  NativeForTest fn("primes");
  ASSERT_TRUE(fn.start().ok());
  const std::pair<const char*, const char*> known[] = {{"0", "0\n"},
                                                       {"2", "0\n"},
                                                       {"3", "1\n"},
                                                       {"4", "2\n"},
                                                       {"5", "2\n"},
                                                       {"6", "3\n"},
                                                       {"10", "4\n"},
                                                       {"100", "25\n"},
                                                       {"1000", "168\n"},
                                                       {"10000", "1229\n"},
                                                       {"100000", "9592\n"},
                                                       {"1000000", "78498\n"},
                                                       {"10000000", "664579\n"},
                                                       {"7919", "999\n"},
                                                       {"7920", "1000\n"}};
  for (const auto& [n, count] : known) {
    EXPECT_EQ(fn.ask("", "/", std::string("n=") + n), std::pair(200, std::string(count))) << n;
    EXPECT_EQ(fn.ask(std::string(n) + "\n", "/", ""), std::pair(200, std::string(count))) << n;
  }
  EXPECT_EQ(fn.ask("many", "/", "").first, 400);
  EXPECT_EQ(fn.ask("", "/", "").first, 400);
  EXPECT_EQ(fn.ask("", "/", "n=10000000001").first, 400);
}

TEST(NativePrimes, EndsAtItsTimeLimitAndWhenCancelled) {
  NativeForTest fn("primes");
  fn.spec.options.exec_timeout = std::chrono::milliseconds(50);
  ASSERT_TRUE(fn.start().ok());
  fn.ask("", "/", "n=10000000000");
  EXPECT_EQ(fn.last.end, CallEnd::kTimedOut);
  EXPECT_FALSE(fn.last.response_begun);
  CallForTest call;
  call.head.query = "n=10000000000";
  call.cancellation.cancel(CancelReason::kClientGone);
  EXPECT_EQ(call.run(*fn.instance).end, CallEnd::kCancelled);
}

// FIPS 180-4's own examples, and lengths around a block's end against sha256sum(1).
TEST(NativeSha256, GivesThePublishedDigests) {
  EXPECT_EQ(base::hex(base::sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(base::hex(base::sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(base::hex(base::sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(base::hex(base::sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  NativeForTest fn("sha256");
  ASSERT_TRUE(fn.start().ok());
  EXPECT_EQ(fn.ask("abc", "/", "rounds=2").second,
            "4f8b42c22dd3729b519ba6f68d2da7cc5b2d606d05daed5ad5128cc03e6c6358\n");  // as Bitcoin's double SHA-256
  EXPECT_EQ(fn.ask("abc", "/", "rounds=0").first, 400);
  EXPECT_EQ(fn.ask("abc", "/", "rounds=x").first, 400);
}

TEST(NativeMatrix, Multiplies) {
  NativeForTest fn("matrix");
  if (const absl::Status started = fn.start(); absl::IsUnavailable(started)) GTEST_SKIP() << started;
  const auto [status, body] =
      fn.ask(raw(2, 3, {1, 2, 3, 4, 5, 6}) + raw(3, 2, {7, 8, 9, 10, 11, 12}), "/multiply", "", kRaw);
  EXPECT_EQ(status, 200);
  EXPECT_EQ(body, raw(2, 2, {58, 64, 139, 154}));
  // A product of more than one block of rows, against the sum written out.
  std::vector<double> a(300 * 4), b(4 * 3);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i % 17);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i) - 5;
  const std::vector<double> product = elements_of(fn.ask(raw(300, 4, a) + raw(4, 3, b), "/multiply", "", kRaw).second);
  ASSERT_EQ(product.size(), 900U);
  for (std::size_t r = 0; r < 300; ++r) {
    for (std::size_t c = 0; c < 3; ++c) {
      double sum = 0;
      for (std::size_t k = 0; k < 4; ++k) sum += a[4 * r + k] * b[3 * k + c];
      EXPECT_EQ(product[3 * r + c], sum);
    }
  }
}

TEST(NativeMatrix, Inverts) {
  NativeForTest fn("matrix");
  if (const absl::Status started = fn.start(); absl::IsUnavailable(started)) GTEST_SKIP() << started;
  const std::vector<double> small = elements_of(fn.ask(raw(2, 2, {4, 7, 2, 6}), "/invert", "", kRaw).second);
  ASSERT_EQ(small.size(), 4U);
  const double expected[] = {0.6, -0.7, -0.2, 0.4};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(small[i], expected[i], 1e-14);
  // The inverse of the Hilbert matrix has integers: https://oeis.org/A189766 for n = 3.
  const std::vector<double> hilbert = elements_of(
      fn.ask(raw(3, 3, {1, 1. / 2, 1. / 3, 1. / 2, 1. / 3, 1. / 4, 1. / 3, 1. / 4, 1. / 5}), "/invert", "", kRaw)
          .second);
  const double integers[] = {9, -36, 30, -36, 192, -180, 30, -180, 180};
  for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(hilbert[i], integers[i], 1e-10);
  // A times its inverse.
  constexpr std::size_t kN = 50;
  std::vector<double> a(kN * kN);
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = std::sin(static_cast<double>(i * i + 1)) + (i % (kN + 1) == 0 ? 5 : 0);
  const std::vector<double> inverse = elements_of(fn.ask(raw(kN, kN, a), "/invert", "", kRaw).second);
  const std::vector<double> identity =
      elements_of(fn.ask(raw(kN, kN, a) + raw(kN, kN, inverse), "", "operation=multiply", kRaw).second);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(identity[i], i % (kN + 1) == 0 ? 1 : 0, 1e-10);
}

TEST(NativeMatrix, TakesTheNaturalLogarithm) {
  NativeForTest fn("matrix");
  if (const absl::Status started = fn.start(); absl::IsUnavailable(started)) GTEST_SKIP() << started;
  const std::vector<double> logs = elements_of(fn.ask(raw(1, 3, {1, 2.718281828459045, 10}), "/log", "", kRaw).second);
  EXPECT_EQ(logs[0], 0);
  EXPECT_NEAR(logs[1], 1, 1e-15);
  EXPECT_NEAR(logs[2], 2.302585092994046, 1e-15);
}

TEST(NativeMatrix, SaysWhatWasExpected) {
  NativeForTest fn("matrix");
  if (const absl::Status started = fn.start(); absl::IsUnavailable(started)) GTEST_SKIP() << started;
  const auto refused = [&](std::string body, const char* path, const char* what) {
    const auto [status, text] = fn.ask(std::move(body), path, "", kRaw);
    EXPECT_EQ(status, 400) << text;
    EXPECT_THAT(text, HasSubstr(what));
  };
  refused(raw(1, 1, {1}), "/divide", "/multiply, /invert or /log");
  refused("short", "/log", "16 bytes of rows and columns were expected");
  refused(raw(2, 2, {1, 2, 3}), "/log", "32 of 2 x 2 numbers were expected");
  refused(raw(1, 1, {1}) + "x", "/log", "1 bytes follow");
  refused(raw(0, 4, {}), "/log", "from 1 to 16777216 elements");
  refused(raw(1ULL << 40, 1ULL << 40, {}), "/log", "from 1 to 16777216 elements");
  refused(raw(1, 2, {1, 2}) + raw(1, 2, {1, 2}), "/multiply", "as many columns");
  refused(raw(1, 1, {2}), "/multiply", "raw matrix 2 of 2");
  refused(raw(1, 2, {1, 2}), "/invert", "a square one");
  refused(raw(2, 2, {1, 2, 2, 4}), "/invert", "singular");
  refused(raw(1, 2, {1, -3}), "/log", "row 0, column 1 (from 0) is -3");
  EXPECT_EQ(fn.ask("", "/log", "", {{"Content-Type", "text/csv"}}).first, 400);
  EXPECT_EQ(
      fn.ask(raw(1, 1, {1}), "/log", "", {{"Content-Type", "application/octet-stream"}, {"Accept", "text/html"}}).first,
      400);
}

TEST(NativeRuntime, KnowsItsFunctionsOnly) {
  NativeForTest fn("nothing");
  EXPECT_THAT(std::string(fn.start().message()), HasSubstr("one of echo, matrix, primes, sha256 was expected"));
}

TEST(NativeRuntime, StopsAndRefuses) {
  NativeForTest fn("echo");
  ASSERT_TRUE(fn.start().ok());
  fn.instance->stop(std::chrono::seconds(1));
  EXPECT_FALSE(fn.instance->usable());
  fn.ask("x", "/", "");
  EXPECT_EQ(fn.last.end, CallEnd::kUnreachable);
}

}  // namespace
}  // namespace orla::function
