// A handler for tests of the wasm runtime: the query says what it does.
#include <stdio.h>
#include <time.h>

#include "orla.h"

static int calls;
static int initialized;
static char* volatile kept;  // so that nothing is optimised away

__attribute__((constructor)) static void initialize(void) { initialized = 1; }

static int is(const char* query, const char* what) { return strcmp(query, what) == 0; }

static void echo(void) {
  static char block[65536];
  for (;;) {
    const int32_t n = orla_body_read(block, sizeof block);
    if (n <= 0) return;
    orla_write(block, (uint32_t)n);
  }
}

ORLA_HANDLER {
  char query[64];
  const int32_t length = orla_query(query, sizeof query - 1);
  ++calls;
  if (length < 0 || (size_t)length >= sizeof query) return 7;
  query[length] = 0;
  if (is(query, "echo") || is(query, "")) {
    echo();
  } else if (is(query, "calls")) {
    char text[64];
    snprintf(text, sizeof text, "%d %d", calls, initialized);
    orla_write_text(text);
  } else if (is(query, "head")) {
    char text[256];
    orla_status(201);
    orla_set_header_text("Content-Type", "text/x-head");
    orla_set_header_text("Set-Cookie", "a=1");
    orla_set_header_text("Set-Cookie", "b=2");
    if (orla_set_header_text("Bad Name", "x") != -1 || orla_set_header_text("X", "a\r\nb: c") != -1) return 8;
    if (orla_status(99) != -1) return 9;
    text[orla_method(text, sizeof text)] = 0;
    orla_write_text(text);
    orla_write_text(" ");
    text[orla_path(text, sizeof text)] = 0;
    orla_write_text(text);
    orla_write_text(" ");
    if (orla_header_text("x-greeting", text, sizeof text) >= 0) orla_write_text(text);
    for (uint32_t i = 0;; ++i) {
      const int32_t n = orla_header_name(i, text, sizeof text);
      if (n < 0) break;
      orla_write_text("\n");
      orla_write(text, (uint32_t)n);
      orla_write_text("=");
      orla_write(text, (uint32_t)orla_header_value(i, text, sizeof text));
    }
  } else if (is(query, "body")) {
    size_t bytes = 0;
    char* body = orla_body(1 << 20, &bytes);
    if (body == NULL) {
      orla_status(413);
      return 0;
    }
    orla_write(body, (uint32_t)bytes);
    free(body);
  } else if (is(query, "five")) {
    orla_write_text("partial");
    return 5;
  } else if (is(query, "flush")) {
    orla_status(206);
    orla_write_text("one");
    orla_flush();
    if (orla_status(500) != -1) return 8;
    orla_write_text("two");
    orla_flush();
  } else if (is(query, "flushfail")) {
    orla_write_text("one");
    orla_flush();
    return 5;
  } else if (is(query, "outside")) {
    orla_write((const void*)0xfffffff0U, 64);
  } else if (is(query, "trap")) {
    __builtin_trap();
  } else if (is(query, "loop")) {
    for (volatile int forever = 1; forever;) continue;
  } else if (is(query, "log")) {
    orla_log_text("from the handler");
    printf("printed\n");
    fflush(stdout);
    orla_write_text("ok");
  } else if (is(query, "keep")) {
    for (;;) {
      char* more = (char*)malloc(1 << 20);
      if (more == NULL) break;
      memset(more, 1, 1 << 20);
      kept = more;
    }
    orla_write_text("full");
  } else {
    orla_status(404);
  }
  return 0;
}
