#include "function/process_upload.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>

namespace orla::function {

namespace {

constexpr std::size_t kBlockBytes = 64 * 1024;

}  // namespace

Upload::Upload(RequestBody& body, int socket, Form form)
    : body_(body), socket_(socket), form_(form), thread_([this] { run(); }) {}

void Upload::stop() {
  if (!thread_.joinable()) return;
  if (!done_) {
    stopping_ = true;
    body_.discard();
    ::shutdown(socket_, SHUT_RDWR);
  }
  thread_.join();
}

void Upload::run() {
  constexpr std::size_t kBefore = 10;  // room for a chunk's size and its line end
  std::array<char, kBefore + kBlockBytes + 2> block;
  while (!stopping_) {
    char* begin = block.data() + kBefore;
    const absl::StatusOr<std::size_t> n = body_.read(begin, kBlockBytes);
    if (!n.ok()) {
      no_body_ = true;
      ::shutdown(socket_, SHUT_RDWR);  // half a request must not look like one
      return;
    }
    if (*n == 0) break;
    char* end = begin + *n;
    if (form_ == Form::kChunked) {
      const std::string size = fmt::format("{:x}\r\n", *n);
      begin -= size.size();
      size.copy(begin, size.size());
      *end++ = '\r';
      *end++ = '\n';
    }
    if (!send({begin, static_cast<std::size_t>(end - begin)})) return;
  }
  if (stopping_ || (form_ == Form::kChunked && !send("0\r\n\r\n"))) return;
  if (form_ == Form::kTunnel) ::shutdown(socket_, SHUT_WR);
  done_ = true;
}

bool Upload::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    if (n < 0 && errno == EAGAIN) {
      pollfd event{socket_, POLLOUT, 0};
      (void)::poll(&event, 1, 1000);
    } else if (n < 0 && errno != EINTR) {
      return false;
    }
    if (stopping_) return false;
  }
  return true;
}

}  // namespace orla::function
