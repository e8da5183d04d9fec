/* Numbers of a request's query: "?ms=100". For handlers in C and C++. */
#pragma once

#include "orla.h"

/* The number that follows "KEY=", or `otherwise` when there is none; never below 0 or above `most`. */
static inline long orla_query_number(const char* key, long otherwise, long most) {
  char query[512];
  const size_t key_bytes = strlen(key);
  const int32_t bytes = orla_query(query, sizeof query - 1);
  const char* at = query;
  query[bytes < 0 ? 0 : (bytes < (int32_t)sizeof query ? bytes : (int32_t)sizeof query - 1)] = 0;
  while (at != NULL) {
    if (strncmp(at, key, key_bytes) == 0 && at[key_bytes] == '=') {
      const long value = strtol(at + key_bytes + 1, NULL, 10);
      return value < 0 ? 0 : (value > most ? most : value);
    }
    at = strchr(at, '&');
    if (at != NULL) ++at;
  }
  return otherwise;
}
