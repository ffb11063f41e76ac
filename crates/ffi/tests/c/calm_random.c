/* Random call lists through the library and through c/calm.c: every answer is the same, to the bit.
 *
 * Each list has a path of its own: a round trip, jitter, a share of lost copies, a queue that comes and goes, silences, and
 * settings. Some of its numbers are at the edge of what 32 bits hold. The argument says how many lists. */
#include <stdlib.h>

#include "beside.h"

#define SLOTS 3

static uint64_t seed;

/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint32_t word(void) {
  uint64_t x = seed += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return (uint32_t)((x ^ x >> 31) >> 32);
}

static uint32_t below(uint32_t limit) { return (uint32_t)((uint64_t)word() * limit >> 32); }

static int one_in(uint32_t n) { return below(n) == 0; }

typedef struct {
  millpond_exchange theirs;
  calm_exchange ours;
  uint64_t sent_us[256], due_us;
  uint8_t retransmissions;
  int is_open;
} slot;

typedef struct {
  uint32_t rtt_us, jitter_us, queue_us;
  uint32_t lost; /* in thousandths */
  int wild;      /* times at the edges instead of a path's */
} path;

static millpond_peer peer;
static slot slots[SLOTS];
static uint64_t now_us;
static unsigned long waits, replies, held;

static void must(int32_t answer) { EXPECT(answer >= 0, "%s", millpond_error_text(answer)); }

static uint32_t any_span(void) {
  static const uint32_t edges[] = {0, 1, 5, 19999, 20000, 1999999, 2000000, 240000000, 600000001, 0x7fffffff, 0xfffffffe, 0xffffffff};
  return one_in(3) ? edges[below(sizeof edges / sizeof edges[0])] : word() >> below(32);
}

static uint32_t round_trip(const path *p) {
  return p->wild ? any_span() : p->rtt_us + below(p->jitter_us + 1) + (one_in(2) ? p->queue_us : 0);
}

static millpond_cx context(void) {
  millpond_cx cx;
  uint16_t i;
  cx.now_us = now_us;
  cx.chance = one_in(8) ? (one_in(2) ? 0 : UINT32_MAX) : word();
  cx.open = 0;
  cx.waiting = (uint16_t)below(3);
  for (i = 0; i < SLOTS; i++) cx.open = (uint16_t)(cx.open + slots[i].is_open);
  return cx;
}

static void set(uint16_t setting, const char *name, uint32_t value) {
  must(millpond_peer_set(&peer, setting, value));
  SAME(beside_set(name, value), 1);
}

static void begin(uint16_t preset) {
  int adapts = preset != MILLPOND_PRESET_RFC7252;
  must(millpond_peer_init(&peer, MILLPOND_SIZES, preset));
  SAME(beside_begin(preset), 1);
  memset(slots, 0, sizeof slots);
  now_us = one_in(2) ? 0 : word();
  if (one_in(2)) set(MILLPOND_SETTING_LEAST_WAIT, "least-wait", one_in(2) ? 200000 : below(600000001));
  if (adapts && one_in(2)) set(MILLPOND_SETTING_PATIENCE, "patience", one_in(2) ? 4000000 : 1000 + below(600000000));
  if (one_in(4)) set(MILLPOND_SETTING_ACK_TIMEOUT, "ack-timeout", 1000 + below(2000000));
  if (one_in(4)) set(MILLPOND_SETTING_MAX_WAIT, "max-wait", 2001000 + below(300000000));
  SAME(calm_init(&beside.peer, &beside.settings), 0);
  if (one_in(4)) {
    uint32_t remembered = any_span();
    must(millpond_peer_recall(&peer, remembered));
    SAME(calm_recall(&beside.peer, remembered), 0);
  }
}

static void end(slot *s, uint8_t why) {
  millpond_cx cx = context();
  must(millpond_on_end(&peer, &s->theirs, why, &cx));
  beside_end(&s->ours, why, &cx);
  s->is_open = 0;
}

static void reply(slot *s, const path *p) {
  millpond_sample sample;
  uint8_t copy = (uint8_t)below(s->retransmissions + 1u);
  uint64_t arrives = s->sent_us[copy] + round_trip(p);
  millpond_cx cx;
  if (arrives > now_us) now_us = arrives;
  cx = context();
  memset(&sample, 0, sizeof sample);
  sample.since_first_us = p->wild ? any_span() : (uint32_t)(now_us - s->sent_us[0]);
  sample.since_last_us = p->wild ? any_span() : (uint32_t)(now_us - s->sent_us[s->retransmissions]);
  sample.retransmissions = s->retransmissions;
  sample.kind = (uint8_t)(one_in(10) ? MILLPOND_KIND_SEPARATE : below(2));
  sample.names = (uint8_t)(one_in(4) ? below(3) : MILLPOND_NAMES_COPY);
  if (sample.names == MILLPOND_NAMES_COPY) {
    sample.named = one_in(20) ? (uint8_t)below(256) : copy;
    sample.since_named_us = p->wild ? any_span() : (uint32_t)(now_us - s->sent_us[copy]);
  }
  must(millpond_on_reply(&peer, &s->theirs, &sample, &cx));
  beside_reply(&s->ours, &sample, &cx);
  s->is_open = 0;
  replies++;
}

static void timeout(slot *s) {
  millpond_cx cx;
  millpond_wait wait;
  if (s->due_us > now_us) now_us = s->due_us;
  cx = context();
  must(millpond_on_timeout(&peer, &s->theirs, &cx, &wait));
  beside_timeout(&s->ours, &cx, &wait);
  s->retransmissions++;
  s->sent_us[s->retransmissions] = now_us;
  s->due_us = now_us + wait.span_us;
  waits++;
}

static void start(slot *s) {
  millpond_cx cx;
  millpond_wait wait;
  s->is_open = 1;
  cx = context();
  must(millpond_on_start(&peer, &s->theirs, 40, &cx, &wait));
  beside_start(&s->ours, &cx, &wait);
  s->retransmissions = 0;
  s->sent_us[0] = now_us;
  s->due_us = now_us + wait.span_us;
  waits++;
}

static void admit(uint8_t message_class) {
  millpond_cx cx = context();
  uint64_t at_us = 0;
  int32_t admission = millpond_admit(&peer, message_class, 40, &cx, &at_us);
  must(admission);
  beside_admit(message_class, &cx, admission, at_us);
  if (admission != MILLPOND_ADMIT_NOW) held++;
  if (admission == MILLPOND_ADMIT_AT && one_in(2)) now_us = at_us;
}

static void step(const path *p) {
  slot *s = &slots[below(SLOTS)];
  if (!s->is_open) {
    admit(MILLPOND_CLASS_CONFIRMABLE);
    start(s);
  } else if (s->retransmissions == 255) {
    end(s, MILLPOND_END_GAVE_UP);
  } else if (below(1000) < p->lost) {
    if (s->retransmissions >= 4 && !one_in(4)) end(s, MILLPOND_END_GAVE_UP);
    else timeout(s);
  } else if (one_in(20)) {
    end(s, (uint8_t)below(3));
  } else {
    reply(s, p);
  }
  if (one_in(12)) {
    admit(MILLPOND_CLASS_PLAIN);
    if (one_in(2)) {
      millpond_cx cx = context();
      must(millpond_on_plain_send(&peer, 40, &cx));
      beside_plain(&cx);
    }
  }
  now_us += one_in(50) ? UINT64_C(600000000) - 1 + below(3) : below(4000000);
  beside_view(&peer);
}

static void play(uint64_t list) {
  path p;
  uint32_t steps = 20 + below(100), i, known;
  seed = list * UINT64_C(0x2545f4914f6cdd1d);
  begin(one_in(8)   ? MILLPOND_PRESET_RFC7252
        : one_in(2) ? MILLPOND_PRESET_CALM
                    : MILLPOND_PRESET_CALM_UNLIMITED);
  p.rtt_us = (word() >> below(20)) % 60000000;
  p.jitter_us = p.rtt_us >> below(6);
  p.queue_us = one_in(2) ? p.rtt_us * below(5) : 0;
  p.lost = below(700);
  p.wild = one_in(8);
  for (i = 0; i < steps && checks_failed == 0; i++) {
    if (one_in(10)) p.queue_us = one_in(2) ? 0 : below(8000000);
    step(&p);
  }
  must(millpond_peer_base_rtt(&peer, &known));
  SAME(calm_base_rtt(&beside.peer), known);
  EXPECT(checks_failed == 0, "list %llu", (unsigned long long)list);
}

int main(int count, char **arguments) {
  unsigned long lists = count > 1 ? strtoul(arguments[1], NULL, 10) : 0, list;
  for (list = 0; list < lists && checks_failed == 0; list++) play(list);
  printf("calm_random: %lu lists, %lu waits, %lu replies, %lu held back\n", list, waits, replies, held);
  EXPECT(waits > lists && replies > lists && held > lists / 10, "the lists hold too little");
  return verdict("calm_random");
}
