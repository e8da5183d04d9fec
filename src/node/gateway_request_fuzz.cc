// Bytes from a client, cut at places that the first of them choose. Whatever comes: no crash; the same requests
// wherever they are cut; and none that a stricter reader would refuse.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "node/gateway_request.h"
#include "node/gateway_route.h"

namespace {

using orla::node::RequestHead;
using orla::node::RequestLimits;
using orla::node::RequestParser;

constexpr std::uint64_t kBodyLimit = 1000;

void check(const RequestHead& head) {
  if (head.chunked && head.content_length) std::abort();
  if (head.method.empty() || head.path.empty()) std::abort();
  if (head.path.find_first_of("?# \r\n") != std::string::npos) std::abort();
  if (head.http11 && head.chunked && head.path[0] != '/' && head.path != "*") std::abort();
  for (const auto& [name, value] : head.headers) {
    if (name.empty() || name.find_first_of(" \t\r\n:") != std::string::npos) std::abort();
    if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) std::abort();
  }
  const orla::node::Route route = orla::node::route(head.method, head.path);
  if (head.path.starts_with("/system/") && !route.guarded) std::abort();
}

// What the requests in `bytes` say, when they come in pieces of `piece` bytes.
std::string read(std::string_view bytes, std::size_t piece) {
  RequestParser parser({.line_bytes = 100, .header_bytes = 300, .headers = 5});
  std::string seen;
  std::string body;
  std::size_t begin = 0;
  std::size_t have = 0;
  bool in_body = false;
  while (true) {
    std::size_t used = 0;
    const std::string_view now = bytes.substr(begin, have - begin);
    const auto progress = in_body ? parser.body(now, kBodyLimit, body, used) : parser.head(now, used);
    if (used > now.size()) std::abort();
    if (progress == RequestParser::Progress::kFault) {
      if (parser.fault().status < 400) std::abort();
      return seen + "!";
    }
    if (progress == RequestParser::Progress::kMore) {
      begin += used;
      if (have == bytes.size()) return seen;
      have = std::min(bytes.size(), have + piece);
      continue;
    }
    begin += used;
    if (!in_body) {
      const RequestHead& head = parser.request();
      check(head);
      seen += head.method + " " + head.path + "?" + head.query + "\n";
      in_body = head.has_body();
      if (in_body) continue;
    }
    if (body.size() > kBodyLimit) std::abort();
    seen += body + "\n";
    body.clear();
    in_body = false;
    parser.next();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = read(bytes, bytes.size());
  const std::string pieces = read(bytes, 1 + data[0] % 64);
  // A fault may come before the end of a request that whole bytes show, or after; what came before it is the same.
  const std::size_t both = std::min(whole.find('!'), pieces.find('!'));
  if (both == std::string::npos && whole != pieces) std::abort();
  return 0;
}
