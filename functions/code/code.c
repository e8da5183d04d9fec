/* Answers with the status that is asked for: ?code=418. */
#include <stdio.h>

#include "orla_query.h"

ORLA_HANDLER {
  char text[32];
  const long code = orla_query_number("code", 200, 999);
  if (orla_status((int32_t)code) < 0) {
    orla_status(400);
    return orla_write_text("code: expected 200 to 999\n") < 0;
  }
  if (code >= 300 && code < 400) orla_set_header_text("Location", "https://example.invalid/");
  if (code == 204 || code == 304) return 0;
  snprintf(text, sizeof text, "%ld\n", code);
  return orla_write_text(text) < 0;
}
