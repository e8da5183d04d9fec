/* Answers after a while: ?ms=100 (at most ten minutes). */
#include <stdio.h>
#include <time.h>

#include "orla_query.h"

ORLA_HANDLER {
  char text[48];
  const long ms = orla_query_number("ms", 1000, 600000);
  const struct timespec pause = {ms / 1000, (ms % 1000) * 1000000};
  nanosleep(&pause, NULL);
  snprintf(text, sizeof text, "slept %ld ms\n", ms);
  return orla_write_text(text) < 0;
}
