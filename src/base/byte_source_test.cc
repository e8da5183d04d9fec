#include "base/byte_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdio>

namespace orla::base {
namespace {

using ::testing::HasSubstr;

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(compressBound(text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

// All bytes that come before the end or the error.
std::string drain(ByteSource& source, absl::Status& status, std::size_t at_once = 1000) {
  std::string all;
  std::string piece(at_once, '\0');
  for (;;) {
    absl::StatusOr<std::size_t> n = source.read(piece);
    if (!n.ok()) {
      status = n.status();
      return all;
    }
    if (*n == 0) return all;
    all.append(piece, 0, *n);
  }
}

std::string numbers(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += std::to_string(i) + "\n";
  return text;
}

struct Form {
  const char* name;
  std::string (*make)(const std::string&);
};

class Compressed : public ::testing::TestWithParam<Form> {};

TEST_P(Compressed, GivesBackTheTextHoweverItIsCut) {
  const std::string text = numbers(20000);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20}) {
    auto source = decompress(bytes_in_memory(GetParam().make(text), piece), "x");
    ASSERT_TRUE(source.ok()) << source.status();
    absl::Status status;
    EXPECT_EQ(drain(**source, status, piece == 1 ? 4096 : 13), text);
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_P(Compressed, SeveralPartsOneAfterAnother) {
  const std::string a = numbers(100);
  const std::string b = numbers(3000);
  auto source = decompress(bytes_in_memory(GetParam().make(a) + GetParam().make("") + GetParam().make(b), 5), "x");
  ASSERT_TRUE(source.ok());
  absl::Status status;
  EXPECT_EQ(drain(**source, status), a + b);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(Compressed, SkipsAndGoesOn) {
  const std::string text = numbers(20000);
  auto source = decompress(bytes_in_memory(GetParam().make(text)), "x");
  ASSERT_TRUE(source.ok());
  ASSERT_TRUE((*source)->skip(77777).ok());
  absl::Status status;
  EXPECT_EQ(drain(**source, status), text.substr(77777));
  EXPECT_EQ((*source)->skip(1).code(), absl::StatusCode::kOutOfRange);
}

// A stream cut at any byte gives a prefix of the text, then says that it is cut off, again and again.
TEST_P(Compressed, CutOffAnywhere) {
  const std::string text = numbers(300);
  const std::string whole = GetParam().make(text);
  for (std::size_t cut = 4; cut < whole.size(); ++cut) {
    auto source = decompress(bytes_in_memory(whole.substr(0, cut)), "meters");
    ASSERT_TRUE(source.ok());
    absl::Status status;
    const std::string got = drain(**source, status);
    EXPECT_EQ(got, text.substr(0, got.size()));
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << cut;
    EXPECT_THAT(std::string(status.message()), HasSubstr("meters"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("cut off"));
    char byte = 0;
    EXPECT_EQ((*source)->read(std::span(&byte, 1)).status(), status);
  }
}

TEST_P(Compressed, DamageKeepsTheBytesBefore) {
  std::string text;
  std::uint32_t x = 1;
  for (int i = 0; i < 500000; ++i) {
    x = x * 1664525 + 1013904223;
    text += static_cast<char>('0' + (x >> 28) % 10);
  }
  std::string bytes = GetParam().make(text);
  for (std::size_t i = bytes.size() - 200; i < bytes.size() - 190; ++i) bytes[i] = static_cast<char>(~bytes[i]);
  auto source = decompress(bytes_in_memory(bytes), "x");
  ASSERT_TRUE(source.ok());
  absl::Status status;
  const std::string got = drain(**source, status);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_GT(got.size(), 250000U);
  EXPECT_EQ(got.substr(0, 250000), text.substr(0, 250000));
}

INSTANTIATE_TEST_SUITE_P(All, Compressed, ::testing::Values(Form{"gzip", gzip}, Form{"zstd", zstd}),
                         [](const auto& info) { return info.param.name; });

TEST(ByteSource, GzipMayEndInZerosButNotInOtherBytes) {
  absl::Status status;
  auto zeros = decompress(bytes_in_memory(gzip("abc") + std::string(600, '\0')), "x");
  EXPECT_EQ(drain(**zeros, status), "abc");
  EXPECT_TRUE(status.ok()) << status;
  auto other = decompress(bytes_in_memory(gzip("abc") + "more"), "x");
  EXPECT_EQ(drain(**other, status), "abc");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
}

TEST(ByteSource, PlainBytesAreTakenAsTheyAre) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd", "abcde", "\x1f\x8b", "1,2\n3,4\n"}) {
    auto source = decompress(bytes_in_memory(text, 3), "x.csv");
    ASSERT_TRUE(source.ok());
    absl::Status status;
    EXPECT_EQ(drain(**source, status, 2), text);
    EXPECT_TRUE(status.ok());
  }
}

TEST(ByteSource, ANameThatPromisesCompressionMustKeepIt) {
  for (const char* name : {"x.gz", "x.zst"}) {
    EXPECT_EQ(decompress(bytes_in_memory("1,2,3\n"), name).status().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(decompress(bytes_in_memory(""), name).status().code(), absl::StatusCode::kDataLoss);
  }
  // The content decides, whatever the name.
  auto source = decompress(bytes_in_memory(gzip("abc")), "x.csv");
  absl::Status status;
  EXPECT_EQ(drain(**source, status), "abc");
}

TEST(ByteSource, Files) {
  const std::string path = ::testing::TempDir() + "orla_byte_source_" + std::to_string(getpid());
  const std::string text = numbers(50000);
  std::FILE* file = std::fopen(path.c_str(), "wb");  // tidy: allow files: the test makes its own input
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
  ASSERT_EQ(std::fclose(file), 0);

  auto source = open_bytes(path);
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_TRUE((*source)->skip(2).ok());
  ASSERT_TRUE((*source)->skip(100000).ok());
  EXPECT_NEAR((*source)->progress(), 100002.0 / static_cast<double>(text.size()), 1e-9);
  absl::Status status;
  EXPECT_EQ(drain(**source, status), text.substr(100002));
  EXPECT_TRUE(status.ok());
  EXPECT_EQ((*source)->progress(), 1);

  auto again = open_bytes(path);
  ASSERT_TRUE((*again)->skip(text.size()).ok());
  EXPECT_EQ(drain(**again, status), "");
  EXPECT_EQ((*again)->skip(1).code(), absl::StatusCode::kOutOfRange);
  std::remove(path.c_str());

  const absl::Status missing = open_bytes(path).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr(path));
  EXPECT_FALSE(open_bytes(::testing::TempDir()).ok());
}

}  // namespace
}  // namespace orla::base
