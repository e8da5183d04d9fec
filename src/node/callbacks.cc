#include "node/callbacks.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/url.h"

namespace orla::node {

namespace {

// Not to be reached by everybody (RFC 6890 and its registries), and multicast.
constexpr const char* kSpecial[] = {
    "0.0.0.0/8",     "10.0.0.0/8",      "100.64.0.0/10",  "127.0.0.0/8",    "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24",    "192.0.2.0/24",   "192.88.99.0/24", "192.168.0.0/16",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",    "240.0.0.0/4",
    "::/128",        "::1/128",         "64:ff9b:1::/48", "100::/64",       "2001::/23",
    "2001:db8::/32", "fc00::/7",        "fe80::/10",      "fec0::/10",      "ff00::/8",
};
// IPv6 prefixes that carry an IPv4 address, and where in it.
struct Mapped {
  const char* network;
  int at;
};
constexpr Mapped kMapped[] = {{"::ffff:0:0/96", 12}, {"::/96", 12}, {"64:ff9b::/96", 12}, {"2002::/16", 2}};

}  // namespace

absl::StatusOr<CallbackPolicy::Network> CallbackPolicy::parse_network(std::string_view text) {
  const auto wrong = [&] {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is neither an address nor a network; expected such as 127.0.0.1, 10.0.0.0/8 or fd00::/8",
                    text.substr(0, 80)));
  };
  const std::size_t slash = text.find('/');
  const std::string address(text.substr(0, slash));
  Network network;
  network.v6 = address.find(':') != std::string::npos;
  if (inet_pton(network.v6 ? AF_INET6 : AF_INET, address.c_str(), network.bytes) != 1) return wrong();
  network.bits = network.v6 ? 128 : 32;
  if (slash != std::string_view::npos) {
    const std::string_view bits = text.substr(slash + 1);
    const int most = network.bits;
    const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), network.bits);
    if (error != std::errc() || end != bits.data() + bits.size() || network.bits < 0 || network.bits > most)
      return wrong();
  }
  return network;
}

bool CallbackPolicy::contains(const Network& network, const Network& address) {
  if (network.v6 != address.v6) return false;
  const int whole = network.bits / 8;
  if (std::memcmp(network.bytes, address.bytes, static_cast<std::size_t>(whole)) != 0) return false;
  if (network.bits % 8 == 0) return true;
  const int mask = 0xff << (8 - network.bits % 8);
  return ((network.bytes[whole] ^ address.bytes[whole]) & mask) == 0;
}

bool CallbackPolicy::is_special(const Network& address) {
  for (const char* text : kSpecial)
    if (contains(*parse_network(text), address)) return true;
  for (const Mapped& mapped : kMapped) {
    if (!contains(*parse_network(mapped.network), address)) continue;
    Network inner;
    inner.bits = 32;
    std::memcpy(inner.bytes, address.bytes + mapped.at, 4);
    return is_special(inner);
  }
  return false;
}

absl::StatusOr<CallbackPolicy> CallbackPolicy::parse(const std::vector<std::string>& allowed) {
  CallbackPolicy policy;
  for (const std::string& text : allowed) {
    const absl::StatusOr<Network> network = parse_network(text);
    if (!network.ok()) return network.status();
    policy.allowed_.push_back(*network);
  }
  return policy;
}

absl::Status CallbackPolicy::check_address(std::string_view text) const {
  // A link-local one may name its interface: "fe80::1%eth0".
  const absl::StatusOr<Network> address = parse_network(text.substr(0, text.find('%')));
  if (!address.ok()) return address.status();
  if (!is_special(*address)) return absl::OkStatus();
  if (std::any_of(allowed_.begin(), allowed_.end(), [&](const Network& n) { return contains(n, *address); }))
    return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("callbacks to {} are not allowed: it is a loopback, private or otherwise special address; allow it "
                  "with the node's `callbacks_allowed`",
                  text));
}

absl::Status CallbackPolicy::check_url(std::string_view text) const {
  const absl::StatusOr<base::HttpUrl> url = base::parse_http_url(text);
  if (!url.ok()) return url.status();
  std::string host = url->host;
  if (host == "localhost") host = "127.0.0.1";
  if (!parse_network(host).ok()) return absl::OkStatus();
  const absl::Status status = check_address(host);
  return status.ok() ? status : absl::InvalidArgumentError(status.message());
}

}  // namespace orla::node
