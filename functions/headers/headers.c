/* What a function sees of a request, as JSON: method, path, query and headers. */
#include <stdio.h>

#include "orla.h"

static char text[16 * 1024];

static void write_string(const char* from, int32_t bytes) {
  orla_write_text("\"");
  for (int32_t i = 0; i < bytes; ++i) {
    const unsigned char c = (unsigned char)from[i];
    char escaped[8];
    if (c == '"' || c == '\\') {
      snprintf(escaped, sizeof escaped, "\\%c", c);
    } else if (c < 0x20 || c >= 0x7F) { /* a byte beyond ASCII is shown as the character of that number */
      snprintf(escaped, sizeof escaped, "\\u%04x", c);
    } else {
      snprintf(escaped, sizeof escaped, "%c", c);
    }
    orla_write_text(escaped);
  }
  orla_write_text("\"");
}

static int32_t kept(int32_t bytes) { return bytes > (int32_t)sizeof text ? (int32_t)sizeof text : bytes; }

ORLA_HANDLER {
  orla_set_header_text("Content-Type", "application/json");
  orla_write_text("{\"method\":");
  write_string(text, kept(orla_method(text, sizeof text)));
  orla_write_text(",\"path\":");
  write_string(text, kept(orla_path(text, sizeof text)));
  orla_write_text(",\"query\":");
  write_string(text, kept(orla_query(text, sizeof text)));
  orla_write_text(",\"headers\":[");
  for (uint32_t i = 0;; ++i) {
    const int32_t bytes = orla_header_name(i, text, sizeof text);
    if (bytes < 0) break;
    orla_write_text(i == 0 ? "[" : ",[");
    write_string(text, kept(bytes));
    orla_write_text(",");
    write_string(text, kept(orla_header_value(i, text, sizeof text)));
    orla_write_text("]");
  }
  return orla_write_text("]}\n") < 0;
}
