// That a decoder stands up to bytes that nobody wrote.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/random.h"
#include "codec/envelope.h"

namespace orla::codec {

// `good` cut short, lengthened, and changed (also with the checksum made right) gives an error, or what it now says.
inline void expect_robust(const std::string& good, const std::function<absl::Status(std::string_view)>& decode) {
  ASSERT_TRUE(decode(good).ok()) << decode(good);
  base::SeededRandom random(good.size());
  for (std::size_t size = 0; size < good.size(); size += 1 + size / 16)
    EXPECT_FALSE(decode(std::string_view(good).substr(0, size)).ok());
  EXPECT_FALSE(decode(good + "x").ok());
  for (int i = 0; i < 400; ++i) {
    std::string bad = good;
    char& byte = bad[random.below(bad.size() - 8)];
    byte = static_cast<char>(byte ^ static_cast<char>(1 + random.below(255)));
    EXPECT_EQ(decode(bad).code(), absl::StatusCode::kDataLoss);
    bad.resize(bad.size() - 8);
    end_envelope(bad);
    decode(bad).IgnoreError();
  }
  std::string longer = good.substr(0, good.size() - 8) + std::string(1, '\0');
  end_envelope(longer);
  EXPECT_FALSE(decode(longer).ok());
  std::string newer = good;
  newer[1] = 9;
  newer.resize(newer.size() - 8);
  end_envelope(newer);
  EXPECT_EQ(decode(newer).code(), absl::StatusCode::kUnimplemented);
}

}  // namespace orla::codec
