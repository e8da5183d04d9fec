// A WASI command for tests of the wasm runtime: the query says what it does.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static void echo(void) {
  static char block[65536];
  for (;;) {
    const ssize_t n = read(0, block, sizeof block);
    if (n <= 0) return;
    for (ssize_t done = 0; done < n;) {
      const ssize_t put = write(1, block + done, (size_t)(n - done));
      if (put < 0) exit(9);
      done += put;
    }
  }
}

static char* volatile kept;  // so that nothing is optimised away

static int dive(int depth) {
  volatile char room[512];
  room[depth % 512] = (char)depth;
  return depth < 0 ? room[0] : dive(depth + 1) + room[1];
}

int main(int argc, char** argv) {
  const char* what = getenv("Http_Query");
  if (what == NULL || strcmp(what, "echo") == 0) {
    echo();
  } else if (strcmp(what, "environment") == 0) {
    for (char** variable = environ; *variable != NULL; ++variable) puts(*variable);
  } else if (strcmp(what, "arguments") == 0) {
    for (int i = 0; i < argc; ++i) puts(argv[i]);
  } else if (strcmp(what, "exit0") == 0) {
    printf("before");
    exit(0);
  } else if (strcmp(what, "exit3") == 0) {
    printf("partial");
    fprintf(stderr, "going to fail\n");
    exit(3);
  } else if (strcmp(what, "abort") == 0) {
    abort();
  } else if (strcmp(what, "loop") == 0) {
    for (volatile int forever = 1; forever;) continue;
  } else if (strcmp(what, "deep") == 0) {
    return dive(1);
  } else if (strcmp(what, "grow") == 0) {
    for (;;) {
      char* more = malloc(1 << 20);
      if (more == NULL) abort();
      memset(more, 1, 1 << 20);
      kept = more;
    }
  } else if (strcmp(what, "sleep") == 0) {
    fprintf(stderr, "sleeping\n");
    const struct timespec long_time = {3600, 0};
    nanosleep(&long_time, NULL);
  } else if (strcmp(what, "nap") == 0) {
    const struct timespec short_time = {0, 20000000};
    nanosleep(&short_time, NULL);
    printf("slept");
  } else if (strcmp(what, "line") == 0) {
    char* line = malloc(1 << 20);
    memset(line, 'x', 1 << 20);
    fwrite(line, 1, 1 << 20, stderr);
    fprintf(stderr, "\nshort\n");
    printf("logged");
  } else if (strcmp(what, "nothing") == 0) {
    return 0;
  } else if (strcmp(what, "close") == 0) {
    printf("first");
    fflush(stdout);
    close(1);
    return write(1, "x", 1) == -1 && errno == EBADF ? 0 : 1;
  } else if (strcmp(what, "chunks") == 0) {
    for (int i = 0; i < 3; ++i) {
      printf("chunk %d\n", i);
      fflush(stdout);
    }
  } else if (strcmp(what, "large") == 0) {
    static char block[65536];
    memset(block, 'y', sizeof block);
    for (int i = 0; i < 320; ++i) fwrite(block, 1, sizeof block, stdout);
  } else if (strcmp(what, "secret") == 0) {
    char text[256];
    FILE* file = fopen("/var/openfaas/secrets/password", "r");
    if (file == NULL) return 4;
    const size_t n = fread(text, 1, sizeof text, file);
    fwrite(text, 1, n, stdout);
    fclose(file);
    if (fopen("/var/openfaas/secrets/other", "r") != NULL) return 5;
    if (open("/var/openfaas/secrets/password", O_WRONLY | O_CREAT, 0600) >= 0) return 6;
    if (open("/var/openfaas/secrets/../../../etc/passwd", O_RDONLY) >= 0) return 7;
  } else if (strcmp(what, "files") == 0) {
    if (fopen("/etc/passwd", "r") != NULL) return 4;
    if (fopen("made", "w") != NULL) return 5;
    printf("none");
  } else if (strcmp(what, "clock") == 0) {
    struct timespec now;
    uint8_t random[16] = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    printf("%lld ", (long long)now.tv_sec);
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%d ", now.tv_nsec >= 0);
    getentropy(random, sizeof random);
    int bits = 0;
    for (size_t i = 0; i < sizeof random; ++i) bits |= random[i];
    printf("%d", bits != 0);
  } else {
    fprintf(stderr, "unknown: %s\n", what);
    return 2;
  }
  return 0;
}
