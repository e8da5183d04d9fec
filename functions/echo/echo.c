/* Answers with the request's body, piece by piece. */
#include "orla.h"

ORLA_HANDLER {
  static char piece[64 * 1024];
  for (;;) {
    const int32_t n = orla_body_read(piece, sizeof piece);
    if (n <= 0) return 0;
    if (orla_write(piece, (uint32_t)n) < 0) return 1;
  }
}
