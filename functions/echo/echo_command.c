/* Standard input to standard output: the same program as a WASI command and as a process. */
#include <unistd.h>

int main(void) {
  static char piece[64 * 1024];
  for (;;) {
    const ssize_t n = read(0, piece, sizeof piece);
    if (n == 0) return 0;
    if (n < 0) return 1;
    for (ssize_t at = 0; at < n;) {
      const ssize_t done = write(1, piece + at, (size_t)(n - at));
      if (done <= 0) return 1;
      at += done;
    }
  }
}
