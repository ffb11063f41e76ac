/* What calm.c answers to mistakes of its caller: each is refused or does no harm, and is told to CALM_MISUSE. */
#include <stdio.h>
#include <string.h>

#include "../calm.h"

unsigned long misuses;
long last_misuse;
static unsigned long checks, failed;

#define SAME(made, wanted)                                                                         \
  do {                                                                                             \
    long long made_ = (long long)(made), wanted_ = (long long)(wanted);                            \
    checks++;                                                                                      \
    if (made_ != wanted_ && failed++ < 20) printf("%d: %s is %lld, not %lld\n", __LINE__, #made, made_, wanted_); \
  } while (0)

/* The call refuses with this error, and says so to a debug build. */
#define REFUSED(call, error)          \
  do {                                \
    misuses = 0;                      \
    SAME(call, error);                \
    SAME(misuses > 0, 1);             \
    SAME(last_misuse, error);         \
  } while (0)

static calm_cx at(uint64_t now_us) {
  calm_cx cx;
  cx.now_us = now_us;
  cx.chance = 0x80000000u;
  cx.open = 1;
  return cx;
}

/* A peer that has taken so many round trips of this length, a second apart. */
static calm_peer measured(uint32_t rtt_us, int times, uint64_t *now_us) {
  calm_peer peer;
  calm_exchange exchange;
  calm_wait wait;
  calm_sample sample;
  int i;
  memset(&sample, 0, sizeof sample);
  sample.kind = CALM_KIND_PIGGYBACKED;
  sample.since_first_us = sample.since_last_us = rtt_us;
  SAME(calm_init(&peer, NULL), 0);
  for (i = 0; i < times; i++) {
    calm_cx cx = at(*now_us);
    SAME(calm_start(&peer, &exchange, &cx, &wait), 0);
    *now_us += rtt_us;
    cx = at(*now_us);
    SAME(calm_reply(&peer, &exchange, &sample, &cx), 0);
    *now_us += 1000000;
  }
  return peer;
}

static void memory_that_was_not_initialised(void) {
  static const int fills[] = {0x00, 0xff, 0xa5, 0xcd, 0x5a};
  size_t i;
  for (i = 0; i < sizeof fills / sizeof fills[0]; i++) {
    calm_cx cx = at(5);
    calm_peer peer, before;
    calm_exchange exchange;
    calm_wait wait;
    calm_sample sample;
    calm_numbers numbers;
    uint64_t at_us = 7;
    memset(&peer, fills[i], sizeof peer);
    memset(&exchange, fills[i], sizeof exchange);
    memset(&sample, 0, sizeof sample);
    before = peer;
    REFUSED(calm_admit(&peer, CALM_CLASS_CONFIRMABLE, &cx, &at_us), CALM_E_BLANK);
    wait.span_us = 0;
    REFUSED(calm_start(&peer, &exchange, &cx, &wait), CALM_E_BLANK);
    SAME(wait.span_us, 3000000); /* a timer all the same */
    REFUSED(calm_timeout(&peer, &exchange, &cx, &wait), CALM_E_BLANK);
    REFUSED(calm_reply(&peer, &exchange, &sample, &cx), CALM_E_BLANK);
    REFUSED(calm_end(&peer, &exchange, CALM_END_GAVE_UP, &cx), CALM_E_BLANK);
    REFUSED(calm_plain_send(&peer, &cx), CALM_E_BLANK);
    REFUSED(calm_view(&peer, &numbers), CALM_E_BLANK);
    REFUSED(calm_recall(&peer, 5), CALM_E_BLANK);
    SAME(calm_last_wait(&peer), 0);
    SAME(calm_base_rtt(&peer), 0);
    SAME(memcmp(&peer, &before, sizeof peer), 0);
    /* An exchange that was not started, with a peer that is one. */
    SAME(calm_init(&peer, NULL), 0);
    wait.span_us = 0;
    REFUSED(calm_timeout(&peer, &exchange, &cx, &wait), CALM_E_BLANK);
    SAME(wait.span_us, 3000000);
    REFUSED(calm_reply(&peer, &exchange, &sample, &cx), CALM_E_BLANK);
    REFUSED(calm_end(&peer, &exchange, CALM_END_RESET, &cx), CALM_E_BLANK);
  }
}

static void an_exchange_that_ends_twice(void) {
  uint64_t now_us = 0;
  calm_peer peer = measured(300000, 5, &now_us), after;
  calm_exchange exchange;
  calm_wait wait;
  calm_sample sample;
  calm_cx cx = at(now_us);
  memset(&sample, 0, sizeof sample);
  SAME(calm_start(&peer, &exchange, &cx, &wait), 0);
  SAME(calm_end(&peer, &exchange, CALM_END_GAVE_UP, &cx), 0);
  after = peer;
  REFUSED(calm_end(&peer, &exchange, CALM_END_GAVE_UP, &cx), CALM_E_ENDED);
  REFUSED(calm_reply(&peer, &exchange, &sample, &cx), CALM_E_ENDED);
  REFUSED(calm_timeout(&peer, &exchange, &cx, &wait), CALM_E_ENDED);
  SAME(wait.span_us, 3000000);
  SAME(memcmp(&peer, &after, sizeof peer), 0);
  SAME(calm_start(&peer, &exchange, &cx, &wait), 0); /* it may be used again */
}

/* A message layer that forgot its exchange begins it anew, and one that forgot its peer goes on with the exchange. */
static void what_is_begun_twice(void) {
  uint64_t now_us = 0;
  calm_peer peer = measured(300000, 5, &now_us);
  calm_exchange exchange;
  calm_wait first, wait;
  calm_sample sample;
  calm_cx cx = at(now_us);
  memset(&sample, 0, sizeof sample);
  SAME(calm_start(&peer, &exchange, &cx, &first), 0);
  SAME(calm_timeout(&peer, &exchange, &cx, &wait), 0);
  SAME(calm_start(&peer, &exchange, &cx, &wait), 0);
  SAME(wait.span_us, first.span_us);
  SAME(exchange.retransmissions, 0);
  SAME(calm_init(&peer, NULL), 0);
  SAME(calm_timeout(&peer, &exchange, &cx, &wait), 0);
  SAME(calm_reply(&peer, &exchange, &sample, &cx), 0);
  REFUSED(calm_end(&peer, &exchange, CALM_END_RESET, &cx), CALM_E_ENDED);
}

static void arguments_that_are_none(void) {
  calm_settings settings = calm_default;
  calm_peer peer;
  calm_exchange exchange;
  calm_wait wait;
  calm_sample sample;
  calm_cx cx = at(0);
  uint64_t at_us = 0;
  memset(&sample, 0, sizeof sample);
  REFUSED(calm_init(NULL, NULL), CALM_E_NULL);
  settings.ack_timeout_us = 0;
  REFUSED(calm_init(&peer, &settings), CALM_E_SETTINGS);
  REFUSED(calm_start(&peer, &exchange, &cx, &wait), CALM_E_BLANK);
  settings.ack_timeout_us = settings.max_wait_us + 1;
  REFUSED(calm_init(&peer, &settings), CALM_E_SETTINGS);
  SAME(calm_init(&peer, NULL), 0);
  REFUSED(calm_admit(&peer, 2, &cx, &at_us), CALM_E_ARGUMENT);
  REFUSED(calm_admit(&peer, 0, NULL, &at_us), CALM_E_NULL);
  REFUSED(calm_admit(&peer, 0, &cx, NULL), CALM_E_NULL);
  REFUSED(calm_start(&peer, NULL, &cx, &wait), CALM_E_NULL);
  SAME(wait.span_us, 3000000);
  REFUSED(calm_start(&peer, &exchange, &cx, NULL), CALM_E_NULL);
  REFUSED(calm_view(&peer, NULL), CALM_E_NULL);
  SAME(calm_start(&peer, &exchange, &cx, &wait), 0);
  REFUSED(calm_end(&peer, &exchange, 3, &cx), CALM_E_ARGUMENT);
  REFUSED(calm_reply(&peer, &exchange, NULL, &cx), CALM_E_NULL);
  sample.kind = 3;
  REFUSED(calm_reply(&peer, &exchange, &sample, &cx), CALM_E_ARGUMENT);
  SAME(calm_end(&peer, &exchange, CALM_END_CANCELLED, &cx), 0); /* it was open still */
}

/* A pause ends, however far the clock goes back: by an hour, or to the start. */
static void a_clock_that_goes_back(void) {
  uint64_t now_us = UINT64_C(7200000000), at_us = 0;
  calm_peer peer = measured(500000, 5, &now_us);
  calm_exchange exchange;
  calm_wait wait;
  calm_cx cx, back;
  uint64_t i;
  /* A queue: round trips of 30 s above a shortest one of half a second. */
  for (i = 0; i < 5; i++) {
    calm_sample sample;
    memset(&sample, 0, sizeof sample);
    sample.kind = CALM_KIND_PIGGYBACKED;
    sample.since_first_us = sample.since_last_us = 30000000;
    cx = at(now_us);
    SAME(calm_start(&peer, &exchange, &cx, &wait), 0);
    now_us += 30000000;
    cx = at(now_us);
    SAME(calm_reply(&peer, &exchange, &sample, &cx), 0);
  }
  SAME(calm_plain_send(&peer, &cx), 0);
  SAME(calm_admit(&peer, CALM_CLASS_CONFIRMABLE, &cx, &at_us), CALM_ADMIT_AT);
  for (i = 0; i < 2; i++) {
    uint64_t hold_us = at_us - now_us, there_us = 0;
    back = at(i == 0 ? now_us - UINT64_C(3600000000) : 0);
    misuses = 0;
    SAME(calm_admit(&peer, CALM_CLASS_CONFIRMABLE, &back, &there_us), CALM_ADMIT_AT);
    SAME(misuses, 1);
    SAME(last_misuse, CALM_E_CLOCK);
    SAME(there_us - back.now_us <= hold_us, 1);
  }
  /* Back by more than 71 minutes: what was to come is not waited for. */
  SAME(calm_init(&peer, &calm_default), 0);
  SAME(calm_plain_send(&peer, &cx), 0);
  SAME(calm_admit(&peer, CALM_CLASS_PLAIN, &cx, &at_us), CALM_ADMIT_AT);
  back = at(1);
  SAME(calm_admit(&peer, CALM_CLASS_PLAIN, &back, &at_us), CALM_ADMIT_NOW);
  /* At the end of 64 bits nothing wraps. */
  SAME(calm_init(&peer, NULL), 0);
  cx = at(UINT64_MAX);
  SAME(calm_plain_send(&peer, &cx), 0);
  SAME(calm_admit(&peer, CALM_CLASS_PLAIN, &cx, &at_us), CALM_ADMIT_NOW);
}

/* Whatever the clock does between the calls of an exchange, its waits and the pause after it stay within their bounds. */
static void a_clock_that_jumps_during_an_exchange(void) {
  static const uint64_t jumps[] = {UINT64_C(7100000000), 0, UINT64_C(9000000000), 1, UINT64_MAX, UINT64_C(7200000000)};
  size_t i, j;
  for (i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
    for (j = 0; j < sizeof jumps / sizeof jumps[0]; j++) {
      uint64_t now_us = UINT64_C(7200000000), at_us = 0;
      calm_peer peer = measured(500000, 5, &now_us);
      calm_exchange exchange;
      calm_wait wait;
      calm_sample sample;
      calm_cx cx = at(now_us), later = at(jumps[i]), last = at(jumps[j]);
      int32_t admitted;
      memset(&sample, 0, sizeof sample);
      sample.kind = CALM_KIND_PIGGYBACKED;
      sample.since_first_us = sample.since_last_us = UINT32_MAX;
      SAME(calm_start(&peer, &exchange, &cx, &wait), 0);
      SAME(calm_timeout(&peer, &exchange, &later, &wait), 0);
      SAME(wait.span_us >= 200000 && wait.span_us <= 600000000, 1);
      SAME(calm_reply(&peer, &exchange, &sample, &last), 0);
      admitted = calm_admit(&peer, CALM_CLASS_CONFIRMABLE, &last, &at_us);
      SAME(admitted == CALM_ADMIT_NOW || admitted == CALM_ADMIT_AT, 1);
      SAME(at_us >= last.now_us && at_us - last.now_us <= 360000000, 1);
      SAME(calm_start(&peer, &exchange, &later, &wait), 0);
      SAME(wait.span_us >= 200000 && wait.span_us <= 600000000, 1);
    }
  }
}

/* A counter of microseconds in 32 bits, handed on as it is, wraps every 71 minutes: what was learnt stays, and nothing waits for
 * a time that has passed. */
static void a_counter_that_wraps(void) {
  uint64_t now_us = UINT32_MAX - 20000000u, at_us = 0;
  calm_peer peer;
  calm_exchange exchange;
  calm_wait wait;
  calm_sample sample;
  calm_numbers numbers;
  unsigned i;
  memset(&sample, 0, sizeof sample);
  sample.kind = CALM_KIND_PIGGYBACKED;
  sample.since_first_us = sample.since_last_us = 300000;
  SAME(calm_init(&peer, NULL), 0);
  misuses = 0;
  for (i = 0; i < 2000; i++) {
    calm_cx cx = at((uint32_t)now_us);
    SAME(calm_admit(&peer, CALM_CLASS_CONFIRMABLE, &cx, &at_us), CALM_ADMIT_NOW);
    SAME(calm_start(&peer, &exchange, &cx, &wait), 0);
    SAME(i < 10 || (wait.span_us >= 300000 && wait.span_us <= 400000), 1);
    now_us += 300000;
    cx = at((uint32_t)now_us);
    SAME(calm_reply(&peer, &exchange, &sample, &cx), 0);
    now_us += 5000000;
  }
  SAME(calm_view(&peer, &numbers), 0);
  SAME(numbers.samples, 4);
  SAME(misuses, 9); /* the three calls of the exchange after each of three wraps */
}

static void a_clock_of_32_bits(void) {
  calm_clock clock;
  calm_cx cx;
  SAME(calm_clock_init(&clock, 1000, 0xfffffff0u), 0);
  SAME(calm_clock_now(&clock, 0xfffffff0u), 0); /* no tick passed: the same time again */
  SAME(calm_clock_now(&clock, 0xffffffffu), 15000);
  SAME(calm_clock_now(&clock, 4), 20000); /* it wrapped */
  misuses = 0;
  SAME(calm_clock_now(&clock, 0), 20000); /* it went back: time stands still */
  SAME(misuses, 1);
  SAME(last_misuse, CALM_E_CLOCK);
  SAME(calm_clock_now(&clock, 10), 30000);
  SAME(calm_clock_init(&clock, 32768, 0), 0);
  {
    uint32_t i;
    for (i = 1; i <= 32768; i++) (void)calm_clock_now(&clock, i);
  }
  SAME(clock.now_us, 1000000); /* nothing is lost by looking often */
  SAME(calm_clock_init(&clock, 80000000, UINT32_MAX), 0); /* a counter of processor cycles */
  SAME(calm_clock_now(&clock, 78), 0);
  SAME(calm_clock_now(&clock, 79), 1);
  SAME(calm_clock_now(&clock, 79 + 0x7fffffffu), 26843545 + 1);
  SAME(calm_clock_init(&clock, UINT32_MAX, 0), 0);
  SAME(calm_clock_now(&clock, 0x7fffffffu), 499999);
  REFUSED(calm_clock_init(&clock, 0, 5), CALM_E_CLOCK);
  misuses = 0;
  SAME(calm_clock_now(&clock, 500), 0);
  SAME(misuses, 1);
  REFUSED(calm_clock_init(NULL, 1000, 0), CALM_E_NULL);
  SAME(calm_clock_now(NULL, 500), 0);
  /* Handed to calm as it is, a counter of 32 bits of microseconds does no harm either: see a_clock_that_goes_back. */
  {
    uint64_t now_us = UINT32_MAX - 100000u, at_us = 0;
    calm_peer peer = measured(300000, 4, &now_us);
    cx = at((uint32_t)now_us);
    misuses = 0;
    SAME(calm_admit(&peer, CALM_CLASS_CONFIRMABLE, &cx, &at_us), CALM_ADMIT_NOW);
    SAME(misuses, 1);
  }
}

int main(void) {
  memory_that_was_not_initialised();
  an_exchange_that_ends_twice();
  what_is_begun_twice();
  arguments_that_are_none();
  a_clock_that_goes_back();
  a_clock_that_jumps_during_an_exchange();
  a_counter_that_wraps();
  a_clock_of_32_bits();
  printf("mistakes: %lu checks, %lu failed; a peer %lu bytes, an exchange %lu\n", checks, failed,
         (unsigned long)sizeof(calm_peer), (unsigned long)sizeof(calm_exchange));
  return checks > 0 && failed == 0 ? 0 : 1;
}
