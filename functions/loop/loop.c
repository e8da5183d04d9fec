/* Never ends by itself: its time limit ends the call, and nothing else is harmed. */
#include "orla.h"

ORLA_HANDLER {
  volatile unsigned turns = 0;
  for (;;) ++turns;
}
