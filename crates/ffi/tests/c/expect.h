/* What the test programs share: a count of checks, and a line for each that fails. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>

static unsigned long checks_made, checks_failed;

/* The first failures are shown, all are counted. */
#define EXPECT(holds, ...)                                \
  do {                                                    \
    checks_made++;                                        \
    if (!(holds) && checks_failed++ < 20) {               \
      printf("%s:%d: %s: ", __FILE__, __LINE__, #holds);  \
      printf(__VA_ARGS__);                                \
      printf("\n");                                       \
    }                                                     \
  } while (0)

/* Both sides are whole numbers. */
#define SAME(made, wanted)                                                                \
  do {                                                                                    \
    long long made_ = (long long)(made), wanted_ = (long long)(wanted);                   \
    EXPECT(made_ == wanted_, "%s is %lld, not %lld", #made, made_, wanted_);              \
  } while (0)

/* The last line of a test program and its exit status. */
static int verdict(const char *program) {
  printf("%s: %lu checks, %lu failed\n", program, checks_made, checks_failed);
  return checks_made > 0 && checks_failed == 0 ? 0 : 1;
}

#endif
