/* calm.c - see calm.h
 *
 * Whole microseconds throughout: points in time in 64 bits, lengths in 32, which saturate. Averages are rounded to the
 * nearest microsecond, halves up. The same calls give the same answers as those of Millpond's controllers, to the bit.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "calm.h"

/* Called with a CALM_E_ where the caller makes a mistake. A debug build may stop there: define it in a header of yours
 * and compile with -include. */
#ifndef CALM_MISUSE
#define CALM_MISUSE(error) ((void)(error))
#endif

/* A function that is in the code once, however often it is called: small processors have little room. */
#ifdef __GNUC__
#define SHARED __attribute__((noinline))
#else
#define SHARED
#endif

/* The numbers of calm; docs/calm.md has the source of each. */
#define SECOND UINT32_C(1000000)
#define WHOLE 1000u              /* all copies, in the unit of the loss rate */
#define MANY_LOST 350u           /* from this loss rate on loss may be congestion */
#define LOST_AT_FIRST 200u       /* the loss rate of a peer of which nothing is known, ... */
#define SEEN_AT_FIRST 4u         /* ... as if so many copies had shown it */
#define GAIN 12u                 /* one copy moves the loss rate by a twelfth */
#define UNMEASURED 4u            /* with fewer samples a queue cannot be excluded */
#define LATE 3u                  /* so many expiries in a row: the backoff has done what it can */
#define LEAST_MARGIN UINT32_C(20000)       /* the timeout is at least so far above SRTT */
#define NEAR (2u * SECOND)                 /* shorter round trips are no sign of a queue: RFC 7252's first wait outlasts them */
#define LONGEST_PAUSE (240u * SECOND)
#define LONGEST_FIRST (247u * SECOND)      /* EXCHANGE_LIFETIME, RFC 7252 section 4.8.2 */
#define FORGET (600u * SECOND)             /* after so long a silence everything is forgotten */
#define BLIND_PLAIN (3u * SECOND)          /* RFC 8085 section 3.1.3 */
#define LONGEST_SETTING (600u * SECOND)
#define NEVER UINT64_MAX
#define NONE UINT32_MAX

/* States of an exchange. Memory that was not written holds neither. */
#define OPEN ((uint16_t)0xca1fu)
#define ENDED ((uint16_t)0xe4d5u)

const calm_settings calm_default = {2u * SECOND, 120u * SECOND, 4u * SECOND, 200000u, 1u};
const calm_settings calm_rfc7252 = {2u * SECOND, CALM_UNLIMITED, CALM_UNLIMITED, 0u, 0u};

/* ---------------------------------------------------------------- lengths of time */

static uint32_t shorter(uint32_t a, uint32_t b) { return (a < b) ? a : b; }

static uint32_t longer(uint32_t a, uint32_t b) { return (a > b) ? a : b; }

SHARED static uint32_t plus(uint32_t a, uint32_t b) { return (b > (UINT32_MAX - a)) ? UINT32_MAX : (a + b); }

static uint32_t minus(uint32_t a, uint32_t b) { return (a > b) ? (a - b) : 0u; }

static uint32_t distance(uint32_t a, uint32_t b) { return (a > b) ? (a - b) : (b - a); }

/* 2 to the n times as long. */
SHARED static uint32_t shifted(uint32_t a, uint8_t n) { return (a > (UINT32_MAX >> n)) ? UINT32_MAX : (a << n); }

SHARED static uint32_t half_more(uint32_t a) { return plus(a, (a >> 1) + (a & 1u)); }

static uint32_t quarter_more(uint32_t a) { return plus(a, (a >> 2) + ((a >> 1) & 1u)); }

SHARED static uint32_t tenth(uint32_t a) { return (a / 10u) + (((a % 10u) >= 5u) ? 1u : 0u); }

/* Whether so many times the one is more than so many times the other. */
SHARED static int exceeds(uint32_t a, uint32_t times_a, uint32_t b, uint32_t times_b) {
  return ((uint64_t)a * times_a) > ((uint64_t)b * times_b);
}

/* The average after a new value got the share of 1 / 2 to the n (the averages of RFC 6298 section 2 have n of 3 and 2). */
SHARED static uint32_t blend(uint32_t old, uint32_t sample, uint8_t n) {
  uint64_t sum = ((uint64_t)old << n) - old + sample + (UINT32_C(1) << (n - 1u));
  return (uint32_t)(sum >> n);
}

/* Evenly from low to high, both included; low if high is not above it. */
SHARED static uint32_t between(uint32_t low, uint32_t high, uint32_t chance) {
  uint64_t drawn = ((uint64_t)minus(high, low) * chance) + chance;
  return plus(low, (uint32_t)(drawn >> 32));
}

/* ---------------------------------------------------------------- points in time */

static uint64_t after(uint64_t at, uint32_t span) { return (span > (UINT64_MAX - at)) ? UINT64_MAX : (at + span); }

/* How long ago; nothing if it lies ahead. */
SHARED static uint32_t since(uint64_t now, uint64_t at) {
  uint64_t span = (now > at) ? (now - at) : 0u;
  return (span > UINT32_MAX) ? UINT32_MAX : (uint32_t)span;
}

/* ---------------------------------------------------------------- what is known of a peer */

/* Everything but the settings and when the next non-confirmable message may leave. */
static void forget(calm_peer *peer) {
  peer->ended_us = NEVER;
  peer->hold_us = 0u;
  peer->srtt_us = 0u;
  peer->rttvar_us = 0u;
  peer->least_us = NONE;
  peer->recent_us[0] = NONE;
  peer->recent_us[1] = NONE;
  peer->recent_us[2] = NONE;
  peer->recent_us[3] = NONE;
  peer->falls_us = 0u;
  peer->kept_us = 0u;
  peer->lost = LOST_AT_FIRST;
  peer->seen = SEEN_AT_FIRST;
  peer->samples = 0u;
}

static int is_stale(const calm_peer *peer, uint64_t now) { return since(now, peer->ended_us) > FORGET; }

/* For how long from now on nothing leaves for the first time. Never longer than it was when it was set: a clock that went
 * back does not prolong it. */
SHARED static uint32_t left(const calm_peer *peer, uint64_t now) {
  if (peer->hold_us == 0u) {
    return 0u;
  }
  return shorter(since(after(peer->ended_us, peer->hold_us), now), peer->hold_us);
}

/* RFC 6298 section 2, with a margin of its own; and not below 1.1 of the latest round trip. */
SHARED static uint32_t rto(const calm_peer *peer) {
  uint32_t latest = peer->recent_us[0];
  uint32_t smoothed = plus(peer->srtt_us, longer(shifted(peer->rttvar_us, 2u), LEAST_MARGIN));
  if ((peer->samples == 0u) || (peer->settings->adapts == 0u)) {
    return peer->settings->ack_timeout_us;
  }
  return longer(smoothed, plus(latest, tenth(latest)));
}

/* The loss rate after one of gain copies was lost (WHOLE) or was not (0). */
SHARED static uint16_t moved(uint16_t lost, uint8_t gain, uint16_t fate) {
  uint32_t sum = ((uint32_t)lost * ((uint32_t)gain - 1u)) + fate;
  return (uint16_t)(sum / gain);
}

/* Whether loss looks like congestion, if so many retransmissions are lost too: a high rate of it, and either a queue (SRTT is
 * a twentieth above the shortest round trip) or too few samples to exclude one. */
static int is_congested(const calm_peer *peer, uint8_t further) {
  uint16_t lost = peer->lost;
  uint8_t i;
  if (peer->samples == 0u) {
    return 1;
  }
  for (i = 0u; (i < further) && (i < LATE); i++) {
    lost = moved(lost, GAIN, WHOLE);
  }
  return (lost >= MANY_LOST) && ((peer->samples < UNMEASURED) || exceeds(peer->srtt_us, 20u, peer->least_us, 21u));
}

/* As long as round trips are without a long queue: from nine tenths of the shortest one to twice as long. */
SHARED static int fits(const calm_peer *peer, uint32_t age) {
  return (peer->least_us != NONE) && !exceeds(peer->least_us, 9u, age, 10u) && (age <= shifted(peer->least_us, 1u));
}

/* A round trip that shows no long queue. */
static int is_near(const calm_peer *peer, uint32_t rtt) {
  return (rtt <= shifted(peer->least_us, 1u)) && ((rtt < NEAR) || exceeds(peer->least_us, 5u, rtt, 4u));
}

/* ---------------------------------------------------------------- what is learnt */

static void see(calm_peer *peer, uint16_t fate) {
  peer->seen = (peer->seen < GAIN) ? (uint8_t)(peer->seen + 1u) : (uint8_t)GAIN;
  peer->lost = moved(peer->lost, peer->seen, fate);
}

static void see_lost(calm_peer *peer, uint8_t copies) {
  uint8_t i;
  for (i = 0u; i < copies; i++) {
    see(peer, WHOLE);
  }
}

static void begin_averages(calm_peer *peer, uint32_t rtt) {
  peer->srtt_us = rtt;
  peer->rttvar_us = blend(0u, rtt, 2u);
}

static void count_sample(calm_peer *peer) {
  peer->samples = (peer->samples < UNMEASURED) ? (uint8_t)(peer->samples + 1u) : (uint8_t)UNMEASURED;
}

/* Before any certain round trip an answer that names an earlier copy is a guess on the long side. */
static void guess(calm_peer *peer, uint32_t rtt) {
  begin_averages(peer, rtt);
  peer->recent_us[0] = rtt;
  count_sample(peer);
  peer->kept_us = 0u;
}

/* A certain round trip. */
static void take(calm_peer *peer, uint32_t rtt) {
  uint32_t *recent = peer->recent_us;
  if (peer->least_us == NONE) {
    begin_averages(peer, rtt);
    peer->least_us = recent[3]; /* what is remembered from before a restart, if anything */
    recent[3] = NONE;
    recent[2] = NONE;
    recent[1] = NONE;
  } else {
    peer->falls_us = blend(peer->falls_us, minus(recent[0], rtt), 2u);
    peer->rttvar_us = blend(peer->rttvar_us, distance(peer->srtt_us, rtt), 2u);
    peer->srtt_us = blend(peer->srtt_us, rtt, 3u);
    recent[3] = recent[2];
    recent[2] = recent[1];
    recent[1] = recent[0];
  }
  recent[0] = rtt;
  /* What was the shortest once may be so no more: it moves by a sixty-fourth towards SRTT. */
  peer->least_us = shorter(blend(peer->least_us, peer->srtt_us, 6u), rtt);
  count_sample(peer);
}

/* How long the next request waits while a queue stands: by how much even the shortest of the last four round trips, less what
 * jitter takes off, is above one and a half times the shortest of all. */
static uint32_t pause(const calm_peer *peer) {
  const uint32_t *recent = peer->recent_us;
  uint32_t shortest = shorter(shorter(recent[0], recent[1]), shorter(recent[2], recent[3]));
  uint32_t falls = plus(shifted(peer->falls_us, 2u), shifted(peer->falls_us, 1u));
  uint32_t standing = minus(shortest, falls);
  uint32_t above = minus(standing, longer(NEAR, half_more(peer->least_us)));
  /* One round trip shows no queue that stands. */
  uint32_t most = (recent[1] == NONE) ? standing : shifted(standing, 3u);
  return shorter(shorter(shifted(above, 4u), most), LONGEST_PAUSE);
}

/* An exchange ended: the next message leaves no sooner than after a pause of about this length. */
static void hold_back(calm_peer *peer, uint32_t pause_us, const calm_cx *cx) {
  peer->hold_us = longer(between(pause_us >> 1, half_more(pause_us), cx->chance), left(peer, cx->now_us));
  peer->ended_us = cx->now_us;
}

/* ---------------------------------------------------------------- answers */

/* What an answer says of round trips (Karn's rule; RFC 8961 section 4, (2d)). */
typedef enum {
  EXACT,    /* one copy was sent, or the last one is named */
  ECHOED,   /* an earlier copy is named: that is the copy which the server processed, not always the one whose answer came */
  AMBIGUOUS /* several were sent and none is named */
} grade;

/* A number that was never sent names no copy. */
static int names_a_copy(const calm_exchange *exchange, const calm_sample *sample) {
  return (sample->names != 0u) && (sample->named <= exchange->retransmissions);
}

static grade grade_of(const calm_exchange *exchange, const calm_sample *sample) {
  if (exchange->retransmissions == 0u) {
    return EXACT;
  }
  if (!names_a_copy(exchange, sample)) {
    return AMBIGUOUS;
  }
  return (sample->named == exchange->retransmissions) ? EXACT : ECHOED;
}

/* How many copies the answer proves lost: those before the one that it names. All before the last if it came when an
 * answer to the last would have, whatever it names. */
static uint8_t proven_lost(const calm_peer *peer, const calm_exchange *exchange, const calm_sample *sample) {
  if (fits(peer, sample->since_last_us)) {
    return exchange->retransmissions;
  }
  return names_a_copy(exchange, sample) ? sample->named : (uint8_t)0u;
}

/* The wait in force, as far as the next exchange may begin with it. */
static uint32_t wait_to_keep(const calm_peer *peer, const calm_exchange *exchange) {
  return shorter(exchange->wait_us, peer->settings->max_wait_us);
}

/* A certain round trip. Its wait is kept only where it was late: loss alone is no congestion. Answers the pause after it. */
static uint32_t learn(calm_peer *peer, const calm_exchange *exchange, uint32_t rtt) {
  take(peer, rtt);
  peer->kept_us = ((exchange->retransmissions > 0u) && !is_near(peer, rtt)) ? wait_to_keep(peer, exchange) : 0u;
  return pause(peer);
}

static void answered(calm_peer *peer, const calm_exchange *exchange, const calm_sample *sample, const calm_cx *cx) {
  grade known = grade_of(exchange, sample);
  uint32_t pause_us = 0u;
  see_lost(peer, proven_lost(peer, exchange, sample));
  see(peer, 0u);
  if (known == EXACT) {
    pause_us = learn(peer, exchange, (exchange->retransmissions == 0u) ? sample->since_first_us : sample->since_named_us);
  } else if ((known == ECHOED) && (peer->least_us == NONE)) {
    guess(peer, sample->since_named_us);
  } else if (fits(peer, sample->since_last_us)) {
    peer->kept_us = 0u;
  } else {
    /* Late, or stored and sent once more: nobody knows how long its way was. */
    peer->kept_us = longer(peer->kept_us, wait_to_keep(peer, exchange));
  }
  hold_back(peer, pause_us, cx);
}

static void unanswered(calm_peer *peer, const calm_exchange *exchange, uint8_t why, const calm_cx *cx) {
  if (why == CALM_END_GAVE_UP) {
    uint8_t copies = (exchange->retransmissions < UINT8_MAX) ? (uint8_t)(exchange->retransmissions + 1u) : UINT8_MAX;
    see_lost(peer, copies);
    peer->kept_us = shorter(shifted(exchange->wait_us, 1u), peer->settings->max_wait_us);
    hold_back(peer, 0u, cx);
  } else if ((why == CALM_END_CANCELLED) && (exchange->retransmissions > 0u)) {
    peer->kept_us = longer(peer->kept_us, wait_to_keep(peer, exchange));
  } else {
    /* A Reset says that the message was not wanted, not how the path is. */
  }
}

/* ---------------------------------------------------------------- waits */

/* The first wait of calm. */
static uint32_t first_wait(const calm_peer *peer, uint32_t chance, uint8_t *reason) {
  const calm_settings *set = peer->settings;
  uint32_t low = rto(peer);
  uint32_t high = (peer->samples == 0u) ? half_more(low) : plus(low, tenth(peer->srtt_us));
  uint32_t drawn = between(low, high, chance);
  *reason = (uint8_t)((peer->samples == 0u) ? CALM_REASON_BLIND : CALM_REASON_INITIAL);
  if (peer->kept_us > drawn) {
    drawn = peer->kept_us;
    *reason = CALM_REASON_CARRIED;
  }
  return shorter(drawn, longer(LONGEST_FIRST, longer(set->max_wait_us, half_more(set->ack_timeout_us))));
}

/* The wait of calm after one of so long: four times as long, and spread by up to a quarter, under congestion; twice as long
 * without, or one and a half times at first and after three expiries. The first step to a peer that was never measured
 * is that of RFC 7252 section 4.2, spread. */
static uint32_t next_wait(const calm_peer *peer, const calm_exchange *exchange, uint32_t chance) {
  uint32_t wait = exchange->wait_us;
  int impatient = (wait >= peer->settings->patience_us);
  int spreads = 0;
  uint32_t next;
  if ((peer->samples == 0u) && (exchange->retransmissions == 0u)) {
    next = shifted(wait, 1u);
    spreads = 1;
  } else if (exchange->retransmissions >= LATE) {
    next = half_more(wait);
  } else if (is_congested(peer, exchange->retransmissions)) {
    next = shifted(wait, (uint8_t)(impatient ? 1u : 2u));
    spreads = 1;
  } else if (exchange->retransmissions == 0u) {
    next = half_more(wait);
  } else {
    next = shifted(wait, 1u);
  }
  return (spreads && !impatient) ? between(next, quarter_more(next), chance) : next;
}

/* Arms the exchange, with at least the least wait: nothing in a fast answer tells that the next may take its time
 * (RFC 7252 section 5.2.2). */
static void arm(const calm_peer *peer, calm_exchange *exchange, uint32_t span_us, calm_wait *wait) {
  exchange->wait_us = longer(span_us, peer->settings->least_wait_us);
  wait->span_us = exchange->wait_us;
}

/* ---------------------------------------------------------------- mistakes */

static int32_t refuse(int32_t error) {
  CALM_MISUSE(error);
  return error;
}

/* Whether this is a peer. The three counters are such in memory that calm_init did not write once in 100 000 times at
 * most, and never if it is zero. */
static int32_t check_peer(const calm_peer *peer) {
  if (peer == 0) {
    return refuse(CALM_E_NULL);
  }
  if ((peer->seen < SEEN_AT_FIRST) || (peer->seen > GAIN) || (peer->samples > UNMEASURED) || (peer->lost > WHOLE) ||
      (peer->settings == 0)) {
    return refuse(CALM_E_BLANK);
  }
  return 0;
}

/* The same with a context. A clock that went back does no harm, but is told. */
static int32_t check(const calm_peer *peer, const calm_cx *cx) {
  int32_t error;
  if (cx == 0) {
    return refuse(CALM_E_NULL);
  }
  error = check_peer(peer);
  if (error < 0) {
    return error;
  }
  if ((peer->ended_us != NEVER) && (cx->now_us < peer->ended_us)) {
    CALM_MISUSE(CALM_E_CLOCK);
  }
  return 0;
}

/* A context, and an exchange that is open. */
static int32_t check_open(const calm_peer *peer, const calm_exchange *exchange, const calm_cx *cx) {
  int32_t error = check(peer, cx);
  if (error < 0) {
    return error;
  }
  if (exchange == 0) {
    return refuse(CALM_E_NULL);
  }
  if (exchange->state != OPEN) {
    return refuse((exchange->state == ENDED) ? CALM_E_ENDED : CALM_E_BLANK);
  }
  return 0;
}

/* What a refused call leaves for firmware that does not look: the longest first wait of RFC 7252 section 4.8. */
static int32_t refuse_wait(calm_wait *wait, int32_t error) {
  if (wait != 0) {
    wait->span_us = 3u * SECOND;
    wait->reason = CALM_REASON_INITIAL;
  }
  return error;
}

/* ---------------------------------------------------------------- calls */

int32_t calm_init(calm_peer *peer, const calm_settings *settings) {
  const calm_settings *set = (settings == 0) ? &calm_default : settings;
  if (peer == 0) {
    return refuse(CALM_E_NULL);
  }
  forget(peer);
  peer->settings = set;
  peer->plain_us = 0u;
  if ((set->ack_timeout_us < (SECOND / 1000u)) || (set->ack_timeout_us > LONGEST_SETTING) ||
      (set->ack_timeout_us > set->max_wait_us) || (set->least_wait_us > LONGEST_SETTING)) {
    peer->seen = 0u; /* blank, so that every later call refuses it */
    return refuse(CALM_E_SETTINGS);
  }
  return 0;
}

int32_t calm_admit(const calm_peer *peer, uint8_t message_class, const calm_cx *cx, uint64_t *at_us) {
  int32_t error = check(peer, cx);
  uint64_t at;
  if (error < 0) {
    return error;
  }
  if (at_us == 0) {
    return refuse(CALM_E_NULL);
  }
  if (message_class > CALM_CLASS_PLAIN) {
    return refuse(CALM_E_ARGUMENT);
  }
  /* One at a time where loss looks like congestion. What nobody knows yet closes the window no more than NSTART does. */
  if ((message_class == CALM_CLASS_CONFIRMABLE) && (cx->open > 1u) && (peer->settings->adapts != 0u) &&
      (peer->samples > 0u) && !is_stale(peer, cx->now_us) && is_congested(peer, 0u)) {
    return CALM_ADMIT_WHEN_ONE_ENDS;
  }
  at = after(cx->now_us, left(peer, cx->now_us));
  /* What lies further ahead than any length of time was set before the clock went back. */
  if ((message_class == CALM_CLASS_PLAIN) && (peer->plain_us > at) && ((peer->plain_us - cx->now_us) <= UINT32_MAX)) {
    at = peer->plain_us;
  }
  *at_us = at;
  return (at > cx->now_us) ? CALM_ADMIT_AT : CALM_ADMIT_NOW;
}

int32_t calm_start(calm_peer *peer, calm_exchange *exchange, const calm_cx *cx, calm_wait *wait) {
  int32_t error = check(peer, cx);
  uint32_t span_us;
  if (error < 0) {
    return refuse_wait(wait, error);
  }
  if ((exchange == 0) || (wait == 0)) {
    return refuse_wait(wait, refuse(CALM_E_NULL));
  }
  if (peer->settings->adapts == 0u) {
    span_us = between(rto(peer), half_more(rto(peer)), cx->chance); /* RFC 7252 section 4.2 */
    wait->reason = CALM_REASON_INITIAL;
  } else {
    if (is_stale(peer, cx->now_us)) {
      forget(peer);
    }
    span_us = first_wait(peer, cx->chance, &wait->reason);
  }
  exchange->state = OPEN;
  exchange->retransmissions = 0u;
  arm(peer, exchange, span_us, wait);
  return 0;
}

int32_t calm_timeout(const calm_peer *peer, calm_exchange *exchange, const calm_cx *cx, calm_wait *wait) {
  int32_t error = check_open(peer, exchange, cx);
  uint32_t next;
  if (error < 0) {
    return refuse_wait(wait, error);
  }
  if (wait == 0) {
    return refuse(CALM_E_NULL);
  }
  next = (peer->settings->adapts == 0u) ? shifted(exchange->wait_us, 1u) : next_wait(peer, exchange, cx->chance);
  /* A cap never shortens a wait that is above it already (RFC 8961 section 4, (4)). */
  next = shorter(next, longer(peer->settings->max_wait_us, exchange->wait_us));
  if (exchange->retransmissions < UINT8_MAX) {
    exchange->retransmissions++;
  }
  wait->reason = CALM_REASON_BACKED_OFF;
  arm(peer, exchange, next, wait);
  return 0;
}

int32_t calm_reply(calm_peer *peer, calm_exchange *exchange, const calm_sample *sample, const calm_cx *cx) {
  int32_t error = check_open(peer, exchange, cx);
  if (error < 0) {
    return error;
  }
  if (sample == 0) {
    return refuse(CALM_E_NULL);
  }
  if (sample->kind > CALM_KIND_SEPARATE) {
    return refuse(CALM_E_ARGUMENT);
  }
  if (peer->settings->adapts != 0u) {
    if (sample->kind == CALM_KIND_SEPARATE) {
      hold_back(peer, 0u, cx); /* the server took its time: no round trip, and no copy's fate */
    } else {
      answered(peer, exchange, sample, cx);
    }
  }
  exchange->state = ENDED;
  return 0;
}

int32_t calm_end(calm_peer *peer, calm_exchange *exchange, uint8_t why, const calm_cx *cx) {
  int32_t error = check_open(peer, exchange, cx);
  if (error < 0) {
    return error;
  }
  if (why > CALM_END_CANCELLED) {
    return refuse(CALM_E_ARGUMENT);
  }
  if (peer->settings->adapts != 0u) {
    unanswered(peer, exchange, why, cx);
  }
  exchange->state = ENDED;
  return 0;
}

int32_t calm_plain_send(calm_peer *peer, const calm_cx *cx) {
  int32_t error = check(peer, cx);
  if (error < 0) {
    return error;
  }
  /* One in a timeout, and one in three seconds before any answer (RFC 8085 section 3.1.3). */
  if (peer->settings->adapts != 0u) {
    uint32_t timeout = (peer->samples == 0u) ? longer(rto(peer), BLIND_PLAIN) : rto(peer);
    peer->plain_us = after(cx->now_us, timeout);
  }
  return 0;
}

int32_t calm_view(const calm_peer *peer, calm_numbers *numbers) {
  int32_t error = check_peer(peer);
  if (error < 0) {
    return error;
  }
  if (numbers == 0) {
    return refuse(CALM_E_NULL);
  }
  numbers->rto_us = rto(peer);
  numbers->srtt_us = peer->srtt_us;
  numbers->rttvar_us = peer->rttvar_us;
  numbers->carried_us = peer->kept_us;
  numbers->lost = peer->lost;
  numbers->samples = peer->samples;
  return 0;
}

/* As long as RFC 7252's timer listens, which has doubled four times by then. */
uint32_t calm_last_wait(const calm_peer *peer) {
  if ((check_peer(peer) < 0) || (peer->settings->adapts == 0u)) {
    return 0u;
  }
  return shorter(shifted(peer->settings->ack_timeout_us, 4u), peer->settings->max_wait_us);
}

uint32_t calm_base_rtt(const calm_peer *peer) {
  return ((check_peer(peer) < 0) || (peer->least_us == NONE)) ? 0u : peer->least_us;
}

int32_t calm_recall(calm_peer *peer, uint32_t base_rtt_us) {
  int32_t error = check_peer(peer);
  if (error < 0) {
    return error;
  }
  if ((peer->least_us == NONE) && (base_rtt_us > 0u)) {
    peer->recent_us[3] = base_rtt_us;
  }
  return 0;
}

/* ---------------------------------------------------------------- clock */

int32_t calm_clock_init(calm_clock *clock, uint32_t ticks_per_second, uint32_t ticks) {
  if (clock == 0) {
    return refuse(CALM_E_NULL);
  }
  clock->now_us = 0u;
  clock->ticks = ticks;
  clock->per_second = ticks_per_second;
  clock->rest = 0u;
  return (ticks_per_second == 0u) ? refuse(CALM_E_CLOCK) : 0;
}

uint64_t calm_clock_now(calm_clock *clock, uint32_t ticks) {
  uint32_t passed;
  uint64_t parts;
  if ((clock == 0) || (clock->per_second == 0u)) {
    CALM_MISUSE((clock == 0) ? CALM_E_NULL : CALM_E_CLOCK);
    return 0u;
  }
  passed = ticks - clock->ticks; /* modulo 2 to the 32 */
  clock->ticks = ticks;
  if (passed > (UINT32_MAX >> 1)) {
    CALM_MISUSE(CALM_E_CLOCK);
    return clock->now_us;
  }
  parts = ((uint64_t)passed * SECOND) + clock->rest;
  clock->now_us += parts / clock->per_second;
  clock->rest = (uint32_t)(parts % clock->per_second);
  return clock->now_us;
}
