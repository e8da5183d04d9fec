/* What a WebAssembly handler of Orla asks for and answers. Version 1 of the interface.
 *
 *   #include "orla.h"
 *
 *   ORLA_HANDLER {                      // exported as orla_handle: runs once per request
 *     long n = orla_body_bytes();       // ...
 *     return 0;                         // anything else: the caller gets a 500
 *   }
 *
 * Built with clang --target=wasm32-wasi -mexec-model=reactor.
 * One instance serves one request at a time and is kept for the next one: what is in its memory stays, until it is
 * thrown away after a failure, at its memory limit, or when no request comes. A constructor or `_initialize` runs once.
 *
 * Every import is of the module "orla". Texts are bytes and a length, without a NUL. A function that copies a text
 * gives its whole length, also when that is more than the room; -1 means that there is none. Bytes that do not lie in
 * the instance's memory fail the request. C11 and C++.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ORLA_INTERFACE_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

#define ORLA_IMPORT(name) __attribute__((import_module("orla"), import_name(#name)))

/* --- The request --- */

ORLA_IMPORT(method) int32_t orla_method(char* to, uint32_t room);
/* What follows the function's name, as it was sent; begins with '/'. */
ORLA_IMPORT(path) int32_t orla_path(char* to, uint32_t room);
/* Without '?'. */
ORLA_IMPORT(query) int32_t orla_query(char* to, uint32_t room);
ORLA_IMPORT(call_id) int32_t orla_call_id(char* to, uint32_t room);
/* The first value of that name, compared without case. */
ORLA_IMPORT(header) int32_t orla_header(const char* name, uint32_t name_bytes, char* to, uint32_t room);
/* Header number `index`, from 0, in the order in which they were sent. */
ORLA_IMPORT(header_name) int32_t orla_header_name(uint32_t index, char* to, uint32_t room);
ORLA_IMPORT(header_value) int32_t orla_header_value(uint32_t index, char* to, uint32_t room);
/* Of the whole body; -1: not known before its end. */
ORLA_IMPORT(body_bytes) int64_t orla_body_bytes(void);
/* Waits for some bytes of the body; 0: its end. */
ORLA_IMPORT(body_read) int32_t orla_body_read(void* to, uint32_t room);

/* --- The response --- */

/* 200 when it is not set; 200..999. -1: no such status, or the response is on its way. */
ORLA_IMPORT(status) int32_t orla_status(int32_t status);
/* Once more with the same name: one more header. -1: not a header, too many, or the response is on its way. */
ORLA_IMPORT(set_header)
int32_t orla_set_header(const char* name, uint32_t name_bytes, const char* value, uint32_t value_bytes);
/* Adds to the body. It is sent when the handler has returned, or when it becomes large, or after a flush. */
ORLA_IMPORT(write) int32_t orla_write(const void* from, uint32_t bytes);
/* Sends the head and what was written until now; the status can then not be changed by a return value. */
ORLA_IMPORT(flush) int32_t orla_flush(void);

/* --- Beside it --- */

/* One line of the function's log; standard error and standard output go there too. */
ORLA_IMPORT(log) int32_t orla_log(const char* from, uint32_t bytes);

#undef ORLA_IMPORT

#ifdef __cplusplus
}
#define ORLA_LINKAGE extern "C"
#else
#define ORLA_LINKAGE
#endif

/* The handler's head; it gives 0, or what is not 0 for a 500. */
#define ORLA_HANDLER ORLA_LINKAGE __attribute__((export_name("orla_handle"))) int32_t orla_handle(void)

/* --- For short --- */

static inline int32_t orla_write_text(const char* text) { return orla_write(text, (uint32_t)strlen(text)); }

static inline int32_t orla_set_header_text(const char* name, const char* value) {
  return orla_set_header(name, (uint32_t)strlen(name), value, (uint32_t)strlen(value));
}

static inline int32_t orla_log_text(const char* text) { return orla_log(text, (uint32_t)strlen(text)); }

/* The first value of that header with a NUL at its end, cut to the room; its whole length, or -1. */
static inline int32_t orla_header_text(const char* name, char* to, uint32_t room) {
  const int32_t bytes = orla_header(name, (uint32_t)strlen(name), to, room == 0 ? 0 : room - 1);
  if (room > 0) to[bytes < 0 ? 0 : ((uint32_t)bytes < room ? (uint32_t)bytes : room - 1)] = 0;
  return bytes;
}

/* The whole body with a NUL behind it, to be freed; null when it is longer than `most` or memory is short. */
static inline char* orla_body(size_t most, size_t* bytes) {
  const int64_t announced = orla_body_bytes();
  size_t room = announced >= 0 ? (size_t)announced : 4096;
  size_t have = 0;
  char* body;
  if (room > most) {
    if (announced >= 0) return NULL;
    room = most;
  }
  body = (char*)malloc(room + 1);
  while (body != NULL) {
    const int32_t n = have < room ? orla_body_read(body + have, (uint32_t)(room - have)) : 0;
    have += (size_t)(n > 0 ? n : 0);
    if (have == room && announced < 0) {
      char* larger;
      if (room >= most) {
        char one;
        if (orla_body_read(&one, 1) > 0) break; /* longer than most */
        body[have] = 0;
        if (bytes != NULL) *bytes = have;
        return body;
      }
      room = room < most / 2 ? room * 2 : most;
      larger = (char*)realloc(body, room + 1);
      if (larger == NULL) break;
      body = larger;
      continue;
    }
    if (n <= 0 || have == room) {
      body[have] = 0;
      if (bytes != NULL) *bytes = have;
      return body;
    }
  }
  free(body);
  return NULL;
}
