/* Answers in pieces with pauses, each sent at once: ?pieces=5&ms=200. */
#include <stdio.h>
#include <time.h>

#include "orla_query.h"

ORLA_HANDLER {
  char text[48];
  const long pieces = orla_query_number("pieces", 5, 100000);
  const long ms = orla_query_number("ms", 200, 60000);
  const struct timespec pause = {ms / 1000, (ms % 1000) * 1000000};
  orla_set_header_text("Content-Type", "text/plain");
  for (long i = 1; i <= pieces; ++i) {
    if (i > 1) nanosleep(&pause, NULL);
    snprintf(text, sizeof text, "piece %ld of %ld\n", i, pieces);
    if (orla_write_text(text) < 0 || orla_flush() < 0) return 1;
  }
  return 0;
}
