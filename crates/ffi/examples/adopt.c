/* A CoAP client with a message layer of its own adopts calm in seven calls.
 *
 * The message layer below is the usual one: a transaction for each confirmable message, a timer, a counter of
 * retransmissions. Three of its lines change: a request leaves when may_leave() says so, the line that computes a timeout
 * asks timeout_of(), and the one that drops a transaction tells settle() how it ended. It keeps when each copy left, since
 * an answer names its copy. Two more calls make the peer.
 *
 * The network is made up, and so is time: requests and answers take 150 to 450 ms each way and one in twelve is
 * lost. Both runs meet the same losses. Compile and run:
 *
 *     cc adopt.c -o adopt $(pkg-config --cflags --libs millpond) && ./adopt
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "millpond.h"

#define ACK_TIMEOUT_US 2000000u
#define MAX_RETRANSMIT 4
#define REQUESTS 400

typedef struct {
  uint16_t mid;
  uint8_t retransmissions;
  uint64_t first_us, last_us, deadline_us;
  uint64_t sent_us[MAX_RETRANSMIT + 1]; /* new: when each copy left */
  millpond_exchange exchange; /* new: beside the message */
} transaction;

typedef struct {
  int adopted;
  millpond_peer peer; /* new: beside the address of the server */
  transaction open;
  unsigned long copies, given_up;
  uint64_t waited_us;
} client;

/* The same words in both runs: what a copy meets depends on its number, not on when it leaves. */
static uint32_t chance_of(uint32_t what, uint32_t mid, uint32_t copy) {
  uint32_t x = what * 0x9e3779b1u ^ mid * 0x85ebca6bu ^ copy * 0xc2b2ae35u;
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

/* ---------------------------------------------------------------- what is new */

static void must(int32_t answer) {
  if (answer < 0) {
    fprintf(stderr, "millpond: %s\n", millpond_error_text(answer));
    exit(1);
  }
}

static millpond_cx context(const transaction *t, uint64_t now_us) {
  millpond_cx cx;
  cx.now_us = now_us;
  cx.chance = chance_of(3, t->mid, t->retransmissions);
  cx.open = 1;
  cx.waiting = 0;
  return cx;
}

/* When the next request may leave: calm holds it back while a queue stands. */
static uint64_t may_leave(const client *c, const transaction *t, uint64_t now_us) {
  millpond_cx cx = context(t, now_us);
  uint64_t at_us = now_us;
  must(millpond_admit(&c->peer, MILLPOND_CLASS_CONFIRMABLE, 40, &cx, &at_us));
  return at_us;
}

/* A copy leaves now; how long until the next? */
static uint32_t timeout_of(client *c, transaction *t, uint64_t now_us) {
  millpond_cx cx = context(t, now_us);
  millpond_wait wait;
  if (t->retransmissions == 0) {
    must(millpond_on_start(&c->peer, &t->exchange, 40, &cx, &wait));
  } else {
    must(millpond_on_timeout(&c->peer, &t->exchange, &cx, &wait));
  }
  return wait.span_us;
}

/* The transaction is over, with an answer that names a copy by the last byte of its token, or without one (named < 0). */
static void settle(client *c, transaction *t, int named, uint64_t now_us) {
  millpond_cx cx = context(t, now_us);
  if (named >= 0) {
    millpond_sample sample;
    memset(&sample, 0, sizeof sample);
    sample.since_first_us = (uint32_t)(now_us - t->first_us);
    sample.since_last_us = (uint32_t)(now_us - t->last_us);
    sample.retransmissions = t->retransmissions;
    sample.kind = MILLPOND_KIND_PIGGYBACKED;
    sample.names = MILLPOND_NAMES_COPY;
    sample.named = (uint8_t)named;
    sample.since_named_us = (uint32_t)(now_us - t->sent_us[named]);
    must(millpond_on_reply(&c->peer, &t->exchange, &sample, &cx));
  } else {
    must(millpond_on_end(&c->peer, &t->exchange, MILLPOND_END_GAVE_UP, &cx));
  }
}

/* ---------------------------------------------------------------- the message layer as it was */

static void send_copy(client *c, transaction *t, uint64_t now_us) {
  uint32_t timeout_us;
  if (c->adopted) {
    timeout_us = timeout_of(c, t, now_us); /* changed */
  } else {
    uint32_t spread = chance_of(3, t->mid, 0) % (ACK_TIMEOUT_US / 2);
    timeout_us = (ACK_TIMEOUT_US + spread) << t->retransmissions;
  }
  t->last_us = t->sent_us[t->retransmissions] = now_us;
  t->deadline_us = now_us + timeout_us;
  c->copies++;
}

static void drop(client *c, transaction *t, int named, uint64_t now_us) {
  if (c->adopted) settle(c, t, named, now_us); /* changed */
  if (named < 0) c->given_up++;
  c->waited_us += now_us - t->first_us;
}

/* ---------------------------------------------------------------- a made-up network */

/* When the answer to this copy arrives; never, if it or the answer was lost. */
static uint64_t answer_to(const transaction *t) {
  uint32_t there = chance_of(1, t->mid, t->retransmissions), back = chance_of(2, t->mid, t->retransmissions);
  if (there % 12 == 0 || back % 12 == 0) return UINT64_MAX;
  return t->last_us + 300000 + there % 300000 + back % 300000;
}

static void run(client *c) {
  uint64_t now_us = 0;
  uint16_t mid;
  for (mid = 1; mid <= REQUESTS; mid++) {
    transaction *t = &c->open;
    uint64_t answer_us;
    int named = 0;
    memset(t, 0, sizeof *t);
    t->mid = mid;
    if (c->adopted) now_us = may_leave(c, t, now_us); /* changed */
    t->first_us = now_us;
    send_copy(c, t, now_us);
    answer_us = answer_to(t);
    while (answer_us > t->deadline_us && t->retransmissions < MAX_RETRANSMIT) {
      uint64_t other_us;
      now_us = t->deadline_us;
      t->retransmissions++;
      send_copy(c, t, now_us);
      other_us = answer_to(t);
      if (other_us < answer_us) {
        answer_us = other_us;
        named = t->retransmissions;
      }
    }
    now_us = answer_us <= t->deadline_us ? answer_us : t->deadline_us;
    drop(c, t, answer_us <= t->deadline_us ? named : -1, now_us);
    now_us += 1000000;
  }
  printf("%-30s %lu requests, %lu copies, %lu given up, %.2f s a request\n",
         c->adopted ? "with millpond (calm):" : "with its own timer (RFC 7252):", (unsigned long)REQUESTS, c->copies,
         c->given_up, (double)c->waited_us / REQUESTS / 1e6);
}

int main(void) {
  static client before, after;
  run(&before);
  after.adopted = 1;
  must(millpond_peer_init(&after.peer, MILLPOND_SIZES, MILLPOND_PRESET_CALM));
  run(&after);
  if (after.waited_us >= before.waited_us) {
    printf("nothing was gained\n");
    return 1;
  }
  return 0;
}
