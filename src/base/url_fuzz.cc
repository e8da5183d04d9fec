// Decoding never fails, never grows, and undoes encoding; a query's pairs encode to a query with the same pairs; what
// is taken for a URL is the same when it is put together again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orla::base;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (percent_decode(text, Plus::kSpace).size() > size) std::abort();
  if (percent_decode(percent_encode(text), Plus::kLiteral) != text) std::abort();
  const auto pairs = parse_query(text);
  std::string again;
  for (const auto& [name, value] : pairs) {
    again += (again.empty() ? "" : "&") + percent_encode(name) + "=" + percent_encode(value);
  }
  if (parse_query(again) != pairs) std::abort();
  if (const auto url = parse_http_url(text); url.ok()) {
    if (url->host.empty() || url->port == 0 || url->target.empty() || url->target[0] != '/') std::abort();
    const auto same = parse_http_url("http://" + url->authority + url->target);
    if (!same.ok() || same->host != url->host || same->port != url->port || same->target != url->target) std::abort();
  }
  return 0;
}
