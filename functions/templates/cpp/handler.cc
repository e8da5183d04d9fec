// The function __NAME__: runs once per request. orla.h says what it can ask and answer.
#include <string>

#include "orla.h"

ORLA_HANDLER {
  std::size_t bytes = 0;
  char* body = orla_body(1 << 20, &bytes);
  if (body == nullptr) {
    orla_status(413);
    return orla_write_text("at most 1 MiB\n") < 0;
  }
  const std::string name = bytes == 0 ? "world" : std::string(body, bytes);
  free(body);
  const std::string answer = "Hello, " + name + "!\n";
  orla_set_header_text("Content-Type", "text/plain");
  return orla_write(answer.data(), static_cast<std::uint32_t>(answer.size())) < 0;
}
