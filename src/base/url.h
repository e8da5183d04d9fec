// Percent escapes and query strings of URLs (RFC 3986, and the forms HTML sends).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace orla::base {

// Decodes "a=1&b=%20" (a plus is a space), in order. Malformed percent escapes are kept as they are.
std::vector<std::pair<std::string, std::string>> parse_query(std::string_view text);

enum class Plus { kLiteral, kSpace };
std::string percent_decode(std::string_view text, Plus plus);

// Everything but letters, digits and -._~ becomes an escape.
std::string percent_encode(std::string_view text);

// Where a request goes.
struct HttpUrl {
  std::string authority;  // as it was written: what Host says
  std::string host;       // without brackets
  std::uint16_t port = 80;
  std::string target = "/";  // path and query, without fragment
};
// INVALID_ARGUMENT for what is no http://HOST[:PORT][/path][?query]: other schemes, user names, odd characters.
absl::StatusOr<HttpUrl> parse_http_url(std::string_view text);

}  // namespace orla::base
