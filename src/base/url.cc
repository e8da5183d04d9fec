#include "base/url.h"

#include <charconv>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/absl_view.h"

namespace orla::base {

namespace {

constexpr std::size_t kMaxHostBytes = 253;  // of a DNS name

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string percent_decode(std::string_view text, Plus plus) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])));
      i += 2;
    } else if (text[i] == '+' && plus == Plus::kSpace) {
      out.push_back(' ');
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' || c == '~') {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.push_back('%');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    }
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> parse_query(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  while (!text.empty()) {
    const std::size_t amp = text.find('&');
    const std::string_view pair = text.substr(0, amp);
    text = amp == std::string_view::npos ? std::string_view() : text.substr(amp + 1);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    out.emplace_back(
        percent_decode(pair.substr(0, equals), Plus::kSpace),
        equals == std::string_view::npos ? std::string() : percent_decode(pair.substr(equals + 1), Plus::kSpace));
  }
  return out;
}

absl::StatusOr<HttpUrl> parse_http_url(std::string_view text) {
  const auto wrong = [&](std::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("URL \"", absl_view(text.substr(0, 200)), "\": ", absl_view(what),
                                                   "; expected http://HOST[:PORT][/path][?query]"));
  };
  constexpr std::string_view kScheme = "http://";
  if (absl::StartsWithIgnoreCase(absl_view(text), "https://")) return wrong("https needs TLS, which is not built yet");
  if (!absl::StartsWithIgnoreCase(absl_view(text), absl_view(kScheme))) return wrong("its scheme is not http");
  for (const char c : text)
    if (c <= ' ' || c >= 0x7f || c == '\\' || c == '"' || c == '<' || c == '>') return wrong("it has odd characters");
  std::string_view rest = text.substr(kScheme.size());
  rest = rest.substr(0, rest.find('#'));
  const std::size_t end = rest.find_first_of("/?");
  HttpUrl url;
  url.authority = std::string(rest.substr(0, end));
  if (end != std::string_view::npos)
    url.target = rest[end] == '?' ? absl::StrCat("/", absl_view(rest.substr(end))) : std::string(rest.substr(end));
  std::string_view host = url.authority;
  if (host.find('@') != std::string_view::npos) return wrong("it has a user name");
  std::string_view port;
  const std::size_t bracket = host.find(']');
  const std::size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    port = host.substr(colon + 1);
    host = host.substr(0, colon);
    const auto [last, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
    if (error != std::errc() || last != port.data() + port.size() || url.port == 0)
      return wrong("its port is not a number of 1 to 65535");
  }
  if (!host.empty() && host.front() == '[') {
    if (host.size() < 4 || host.back() != ']') return wrong("its brackets hold no address");
    host = host.substr(1, host.size() - 2);
    if (host.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos)
      return wrong("its brackets hold no address");
  } else {
    for (const char c : host)
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.' && c != '_')
        return wrong("its host has odd characters");
  }
  if (host.empty() || host.size() > kMaxHostBytes) return wrong("it has no host");
  url.host = std::string(host);
  return url;
}

}  // namespace orla::base
