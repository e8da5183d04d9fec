#include "base/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace orla::base {

namespace {

constexpr std::size_t kRawPieceBytes = 256 * 1024;
// A zstd frame may ask for a window of 2^31 bytes; more than this is refused (zstd's own default for decoders).
constexpr int kMaxZstdWindowLog = 27;

absl::Status errno_status(const std::string& what, int error) {
  const std::string text = fmt::format("{}: {}", what, std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  return absl::UnavailableError(text);
}

class PlainFile final : public ByteSource {
 public:
  PlainFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {
    struct stat info {};
    if (::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode)) size_ = static_cast<std::uint64_t>(info.st_size);
    seekable_ = ::lseek(fd_, 0, SEEK_CUR) == 0 && size_ > 0;
  }
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;
  ~PlainFile() override { ::close(fd_); }

  absl::StatusOr<std::size_t> read(std::span<char> out) override {
    ssize_t n = 0;
    do {
      n = ::read(fd_, out.data(), out.size());
    } while (n < 0 && errno == EINTR);
    if (n < 0) return errno_status(fmt::format("reading {} at byte {}", path_, position_), errno);
    position_ += static_cast<std::uint64_t>(n);
    return static_cast<std::size_t>(n);
  }

  absl::Status skip(std::uint64_t count) override {
    if (!seekable_) return ByteSource::skip(count);
    if (count > size_ - std::min(position_, size_)) {
      return absl::OutOfRangeError(
          fmt::format("{} has {} bytes, expected at least {}: it is shorter than when it was read before", path_, size_,
                      position_ + count));
    }
    if (::lseek(fd_, static_cast<off_t>(position_ + count), SEEK_SET) < 0) {
      return errno_status(fmt::format("seeking in {} to byte {}", path_, position_ + count), errno);
    }
    position_ += count;
    return absl::OkStatus();
  }

  double progress() const override {
    if (size_ == 0) return -1;
    return std::min(1.0, static_cast<double>(position_) / static_cast<double>(size_));
  }

 private:
  int fd_;
  std::string path_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
  bool seekable_ = false;
};

class Memory final : public ByteSource {
 public:
  Memory(std::string bytes, std::size_t piece) : bytes_(std::move(bytes)), piece_(piece) {}
  absl::StatusOr<std::size_t> read(std::span<char> out) override {
    const std::size_t n = std::min({out.size(), piece_, bytes_.size() - position_});
    std::memcpy(out.data(), bytes_.data() + position_, n);
    position_ += n;
    return n;
  }
  double progress() const override {
    return bytes_.empty() ? 1 : static_cast<double>(position_) / static_cast<double>(bytes_.size());
  }

 private:
  std::string bytes_;
  std::size_t piece_;
  std::size_t position_ = 0;
};

// A source whose first bytes have been looked at.
class Prefixed final : public ByteSource {
 public:
  Prefixed(std::string head, std::unique_ptr<ByteSource> rest) : head_(std::move(head)), rest_(std::move(rest)) {}
  absl::StatusOr<std::size_t> read(std::span<char> out) override {
    if (given_ == head_.size()) return rest_->read(out);
    const std::size_t n = std::min(out.size(), head_.size() - given_);
    std::memcpy(out.data(), head_.data() + given_, n);
    given_ += n;
    return n;
  }
  absl::Status skip(std::uint64_t count) override {
    const std::uint64_t here = std::min<std::uint64_t>(count, head_.size() - given_);
    given_ += here;
    return count == here ? absl::OkStatus() : rest_->skip(count - here);
  }
  double progress() const override { return rest_->progress(); }

 private:
  std::string head_;
  std::size_t given_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

// What both decompressors share: a buffer of raw bytes, and an error that is kept until the good bytes are out.
class Decompressor : public ByteSource {
 public:
  double progress() const override { return raw_->progress(); }

  absl::StatusOr<std::size_t> read(std::span<char> out) final {
    if (!failure_.ok()) return failure_;
    std::size_t written = 0;
    while (written < out.size() && !ended_) {
      const absl::Status step = decode(out, written);
      if (!step.ok()) {
        failure_ = step;
        if (written == 0) return failure_;
        break;
      }
    }
    produced_ += written;
    return written;
  }

 protected:
  Decompressor(std::unique_ptr<ByteSource> raw, std::string name)
      : raw_(std::move(raw)), name_(std::move(name)), input_(kRawPieceBytes) {}

  // Decodes some of the raw bytes into out[written...], advancing `written`; sets ended_ at the end.
  virtual absl::Status decode(std::span<char> out, std::size_t& written) = 0;

  // Makes left() > 0, or finds the end of the raw bytes (false).
  absl::StatusOr<bool> refill() {
    if (left() > 0) return true;
    absl::StatusOr<std::size_t> n = raw_->read(input_);
    if (!n.ok()) return n.status();
    consumed_ += begin_;
    begin_ = 0;
    end_ = *n;
    return end_ > 0;
  }
  std::size_t left() const { return end_ - begin_; }

  absl::Status damaged(std::string_view kind, std::string_view what, std::size_t written) const {
    return absl::DataLossError(
        fmt::format("{}: the {} data are {} at compressed byte {}; the {} bytes before it (decompressed) are good: get "
                    "the file again",
                    name_, kind, what, consumed_ + begin_, produced_ + written));
  }

  std::unique_ptr<ByteSource> raw_;
  std::string name_;
  std::vector<char> input_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t consumed_ = 0;  // raw bytes before input_
  std::uint64_t produced_ = 0;
  bool ended_ = false;
  absl::Status failure_;
};

class Gzip final : public Decompressor {
 public:
  Gzip(std::unique_ptr<ByteSource> raw, std::string name) : Decompressor(std::move(raw), std::move(name)) {
    ready_ = inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK;
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() override {
    if (ready_) inflateEnd(&stream_);
  }

 private:
  absl::Status decode(std::span<char> out, std::size_t& written) override {
    if (!ready_) return absl::ResourceExhaustedError(fmt::format("{}: no memory to decompress it", name_));
    absl::StatusOr<bool> more = refill();
    if (!more.ok()) return more.status();
    if (between_) return begin_member(*more, written);
    if (!*more) return damaged("gzip", "cut off", written);

    stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + begin_);
    stream_.avail_in = static_cast<uInt>(left());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    const std::size_t room = std::min<std::size_t>(out.size() - written, std::numeric_limits<uInt>::max());
    stream_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    begin_ = end_ - stream_.avail_in;
    written += room - stream_.avail_out;
    if (result == Z_STREAM_END) {
      between_ = true;
      return absl::OkStatus();
    }
    if (result == Z_OK || result == Z_BUF_ERROR) return absl::OkStatus();
    return damaged("gzip", stream_.msg != nullptr ? fmt::format("damaged ({})", stream_.msg) : "damaged", written);
  }

  // After a member: another one, zeros that fill a block (ignored, as gzip does), or the end.
  absl::Status begin_member(bool more, std::size_t written) {
    if (!more) {
      ended_ = true;
      return absl::OkStatus();
    }
    if (input_[begin_] == '\0') {
      ++begin_;
      padded_ = true;
      return absl::OkStatus();
    }
    if (padded_ || input_[begin_] != '\x1f') return damaged("gzip", "followed by other bytes", written);
    inflateReset(&stream_);
    between_ = false;
    return absl::OkStatus();
  }

  z_stream stream_{};
  bool ready_ = false;
  bool between_ = false;
  bool padded_ = false;
};

class Zstd final : public Decompressor {
 public:
  Zstd(std::unique_ptr<ByteSource> raw, std::string name)
      : Decompressor(std::move(raw), std::move(name)), stream_(ZSTD_createDStream()) {
    if (stream_ != nullptr) ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kMaxZstdWindowLog);
  }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;
  ~Zstd() override { ZSTD_freeDStream(stream_); }

 private:
  absl::Status decode(std::span<char> out, std::size_t& written) override {
    if (stream_ == nullptr) return absl::ResourceExhaustedError(fmt::format("{}: no memory to decompress it", name_));
    absl::StatusOr<bool> more = refill();
    if (!more.ok()) return more.status();
    ZSTD_inBuffer in{input_.data() + begin_, left(), 0};
    ZSTD_outBuffer to{out.data() + written, out.size() - written, 0};
    if (!*more && frame_done_) {
      ended_ = true;
      return absl::OkStatus();
    }
    const std::size_t result = ZSTD_decompressStream(stream_, &to, &in);
    begin_ += in.pos;
    written += to.pos;
    if (ZSTD_isError(result) != 0) {
      return damaged("zstd", fmt::format("damaged ({})", ZSTD_getErrorName(result)), written);
    }
    frame_done_ = result == 0;
    // Without raw bytes the decoder can only give what it still holds; then the frame is cut off.
    if (!*more && to.pos == 0) return damaged("zstd", "cut off", written);
    return absl::OkStatus();
  }

  ZSTD_DStream* stream_;
  bool frame_done_ = true;
};

enum class Format { kPlain, kGzip, kZstd };

Format format_of(std::string_view head) {
  const auto byte = [&](std::size_t i) { return i < head.size() ? static_cast<unsigned char>(head[i]) : 0U; };
  if (byte(0) == 0x1f && byte(1) == 0x8b && byte(2) == 0x08) return Format::kGzip;
  if (byte(0) == 0x28 && byte(1) == 0xb5 && byte(2) == 0x2f && byte(3) == 0xfd) return Format::kZstd;
  // A skippable frame (RFC 8878, 3.1.2) may come first.
  if ((byte(0) & 0xf0) == 0x50 && byte(1) == 0x2a && byte(2) == 0x4d && byte(3) == 0x18) return Format::kZstd;
  return Format::kPlain;
}

}  // namespace

absl::Status ByteSource::skip(std::uint64_t count) {
  std::vector<char> scratch(static_cast<std::size_t>(std::min<std::uint64_t>(count, kRawPieceBytes)));
  std::uint64_t left = count;
  while (left > 0) {
    const std::size_t want = static_cast<std::size_t>(std::min<std::uint64_t>(left, scratch.size()));
    absl::StatusOr<std::size_t> n = read(std::span(scratch.data(), want));
    if (!n.ok()) return n.status();
    if (*n == 0) {
      return absl::OutOfRangeError(fmt::format(
          "the input ends {} bytes before the position to go on at: it is shorter than when it was read before", left));
    }
    left -= *n;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ByteSource>> decompress(std::unique_ptr<ByteSource> raw, const std::string& name) {
  std::string head(4, '\0');
  std::size_t have = 0;
  while (have < head.size()) {
    absl::StatusOr<std::size_t> n = raw->read(std::span(head.data() + have, head.size() - have));
    if (!n.ok()) return n.status();
    if (*n == 0) break;
    have += *n;
  }
  head.resize(have);
  const Format format = format_of(head);
  if (format == Format::kPlain && (name.ends_with(".gz") || name.ends_with(".zst"))) {
    std::string found;
    for (const char c : head) found += fmt::format(" {:02x}", static_cast<unsigned char>(c));
    return absl::DataLossError(
        fmt::format("{}: found {}, expected compressed data after its name: get the file again or rename it", name,
                    found.empty() ? "an empty file" : "the first bytes" + found));
  }
  auto whole = std::make_unique<Prefixed>(std::move(head), std::move(raw));
  if (format == Format::kGzip) return std::make_unique<Gzip>(std::move(whole), name);
  if (format == Format::kZstd) return std::make_unique<Zstd>(std::move(whole), name);
  return whole;
}

absl::StatusOr<std::unique_ptr<ByteSource>> open_bytes(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_status(fmt::format("opening {}", path), errno);
  return decompress(std::make_unique<PlainFile>(fd, path), path);
}

std::unique_ptr<ByteSource> bytes_in_memory(std::string bytes, std::size_t piece) {
  return std::make_unique<Memory>(std::move(bytes), piece);
}

}  // namespace orla::base
