#include "model/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

namespace orla::model {

absl::StatusOr<Address> parse_address(std::string_view text) {
  const auto malformed = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is no address: {}; expected HOST:PORT, such as \"127.0.0.1:7411\" or \"[::1]:7411\"",
                    text.substr(0, 80), why));
  };
  const auto remote = [&] {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a loopback address; expected 127.0.0.0/8, [::1] or localhost, since there is no TLS "
                    "yet to protect another",
                    text.substr(0, 80)));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return malformed("the port is missing");
  const std::string_view port_text = text.substr(colon + 1);
  std::string_view host = text.substr(0, colon);
  Address address;
  const auto [end, error] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), address.port);
  if (port_text.empty() || error != std::errc() || end != port_text.data() + port_text.size()) {
    return malformed("the port is not a number of 0 to 65535");
  }
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    in6_addr v6{};
    if (inet_pton(AF_INET6, std::string(host).c_str(), &v6) != 1) return malformed("no IPv6 address in the brackets");
    if (!IN6_IS_ADDR_LOOPBACK(&v6)) return remote();
    address.host = "::1";
    return address;
  }
  if (host.empty()) return malformed("the host is missing");
  if (host.find(':') != std::string_view::npos) return malformed("an IPv6 address needs brackets");
  if (host == "localhost") {
    address.host = "127.0.0.1";
    return address;
  }
  in_addr v4{};
  if (inet_pton(AF_INET, std::string(host).c_str(), &v4) != 1 || (ntohl(v4.s_addr) >> 24) != 127) return remote();
  address.host = std::string(host);
  return address;
}

std::string to_string(const Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", address.host, v6 ? "]" : "", address.port);
}

}  // namespace orla::model
