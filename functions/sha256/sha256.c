/* SHA-256 (FIPS 180-4) of the request's body, in hexadecimal; ?rounds=1000 hashes the digest again so many times. */
#include <stdio.h>

#include "orla_query.h"

static const uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

typedef struct {
  uint32_t state[8];
  uint64_t bytes;
  unsigned char block[64];
} Hash;

static uint32_t turned(uint32_t x, int by) { return (x >> by) | (x << (32 - by)); }

static void begin(Hash* hash) {
  static const uint32_t kStart[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, kStart, sizeof kStart);
  hash->bytes = 0;
}

static void take_block(Hash* hash) {
  uint32_t w[64];
  uint32_t v[8];
  for (int i = 0; i < 16; ++i) {
    const unsigned char* p = hash->block + 4 * i;
    w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
  }
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t b = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  memcpy(v, hash->state, sizeof v);
  for (int i = 0; i < 64; ++i) {
    const uint32_t s1 = turned(v[4], 6) ^ turned(v[4], 11) ^ turned(v[4], 25);
    const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
    const uint32_t t1 = v[7] + s1 + choice + kRound[i] + w[i];
    const uint32_t s0 = turned(v[0], 2) ^ turned(v[0], 13) ^ turned(v[0], 22);
    const uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += t1;
    v[0] = t1 + s0 + majority;
  }
  for (int i = 0; i < 8; ++i) hash->state[i] += v[i];
}

static void add(Hash* hash, const unsigned char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    hash->block[hash->bytes++ % 64] = from[i];
    if (hash->bytes % 64 == 0) take_block(hash);
  }
}

static void finish(Hash* hash, unsigned char digest[32]) {
  const uint64_t bits = hash->bytes * 8;
  const unsigned char one = 0x80;
  const unsigned char zero = 0;
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = (unsigned char)(bits >> (56 - 8 * i));
  add(hash, &one, 1);
  while (hash->bytes % 64 != 56) add(hash, &zero, 1);
  add(hash, length, 8);
  for (int i = 0; i < 32; ++i) digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

ORLA_HANDLER {
  static unsigned char piece[64 * 1024];
  unsigned char digest[32];
  char text[66];
  Hash hash;
  const long rounds = orla_query_number("rounds", 0, 100000000);
  begin(&hash);
  for (;;) {
    const int32_t n = orla_body_read(piece, sizeof piece);
    if (n < 0) return 1;
    if (n == 0) break;
    add(&hash, piece, (size_t)n);
  }
  finish(&hash, digest);
  for (long i = 0; i < rounds; ++i) {
    begin(&hash);
    add(&hash, digest, sizeof digest);
    finish(&hash, digest);
  }
  for (int i = 0; i < 32; ++i) snprintf(text + 2 * i, 3, "%02x", digest[i]);
  text[64] = '\n';
  return orla_write(text, 65) < 0;
}
