// Calls for tests of runtimes and of what stands on them.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "function/call.h"
#include "function/runtime.h"

namespace orla::function {

// A body that is in memory.
class WholeBody final : public RequestBody {
 public:
  explicit WholeBody(std::string bytes) : bytes_(std::move(bytes)) {}
  std::optional<std::string_view> whole() const override { return bytes_; }
  absl::StatusOr<std::size_t> read(char* to, std::size_t room) override {
    const std::size_t n = bytes_.copy(to, room, at_);
    at_ += n;
    return n;
  }

 private:
  const std::string bytes_;
  std::size_t at_ = 0;
};

// `number` times the same bytes, one after the other, never in memory as a whole.
class RepeatedBody final : public RequestBody {
 public:
  RepeatedBody(std::string bytes, std::size_t number) : bytes_(std::move(bytes)), left_(number * bytes_.size()) {}
  absl::StatusOr<std::size_t> read(char* to, std::size_t room) override {
    const std::size_t at = (bytes_.size() - left_ % bytes_.size()) % bytes_.size();
    const std::size_t n = std::min(left_, bytes_.copy(to, room, at));
    left_ -= n;
    return n;
  }

 private:
  const std::string bytes_;
  std::size_t left_;
};

// Keeps what is answered. Thread-safe.
class WholeResponse : public Response {
 public:
  absl::Status begin(int status, Headers headers, std::optional<std::uint64_t> length) override {
    const std::lock_guard lock(mutex_);
    ++begins_;
    status_ = status;
    headers_ = std::move(headers);
    length_ = length;
    return absl::OkStatus();
  }
  absl::Status write(std::string_view piece) override {
    {
      const std::lock_guard lock(mutex_);
      body_ += piece;
      pieces_.emplace_back(piece);
    }
    changed_.notify_all();
    return absl::OkStatus();
  }

  int begins() const { return locked(begins_); }
  int status() const { return locked(status_); }
  Headers headers() const { return locked(headers_); }
  std::optional<std::uint64_t> length() const { return locked(length_); }
  std::string body() const { return locked(body_); }
  std::vector<std::string> pieces() const { return locked(pieces_); }
  void wait_for_bytes(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return body_.size() >= bytes; });
  }

 private:
  template <typename T>
  T locked(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int begins_ = 0;
  int status_ = 0;
  Headers headers_;
  std::optional<std::uint64_t> length_;
  std::string body_;
  std::vector<std::string> pieces_;
};

// One call with its input and output.
struct CallForTest {
  CallHead head;
  WholeBody whole{""};
  WholeResponse response;
  Cancellation cancellation;

  CallForTest() = default;
  explicit CallForTest(std::string body) : whole(std::move(body)) {}
  CallResult run(Instance& instance) { return run(instance, whole); }
  CallResult run(Instance& instance, RequestBody& body) {
    return instance.call(Call{head, body, response, cancellation});
  }
};

// Keeps lines. Thread-safe.
class KeptLines final : public LogSink {
 public:
  void line(std::string_view instance, std::string_view text) override {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::string(instance) + ": " + std::string(text));
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace orla::function
