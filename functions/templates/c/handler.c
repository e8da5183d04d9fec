/* The function __NAME__: runs once per request. orla.h says what it can ask and answer. */
#include "orla.h"

ORLA_HANDLER {
  size_t bytes = 0;
  char* body = orla_body(1 << 20, &bytes);
  if (body == NULL) {
    orla_status(413);
    return orla_write_text("at most 1 MiB\n") < 0;
  }
  orla_set_header_text("Content-Type", "text/plain");
  orla_write_text("Hello, ");
  if (bytes == 0) {
    orla_write_text("world");
  } else {
    orla_write(body, (uint32_t)bytes);
  }
  free(body);
  return orla_write_text("!\n") < 0;
}
