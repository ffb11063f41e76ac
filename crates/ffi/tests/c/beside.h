/* c/calm.c beside the library: every call is made in both, and every answer must be the same, to the bit. */
#ifndef BESIDE_H
#define BESIDE_H

#include <string.h>

#include "../../../../c/calm.h"
#include "expect.h"
#include "millpond.h"

static struct {
  calm_settings settings;
  calm_peer peer;
} beside;

static calm_cx beside_cx(const millpond_cx *cx) {
  calm_cx same;
  same.now_us = cx->now_us;
  same.chance = cx->chance;
  same.open = cx->open;
  return same;
}

/* The settings of a preset of the library. Answers whether calm.c has them. */
static int beside_begin(uint32_t preset) {
  static const calm_settings unlimited = {2000000, 120000000, CALM_UNLIMITED, 0, 1};
  switch (preset) {
    case MILLPOND_PRESET_CALM: beside.settings = calm_default; break;
    case MILLPOND_PRESET_CALM_UNLIMITED: beside.settings = unlimited; break;
    case MILLPOND_PRESET_RFC7252: beside.settings = calm_rfc7252; break;
    default: return 0;
  }
  SAME(calm_init(&beside.peer, &beside.settings), 0);
  return 1;
}

/* Settings of calm.c by their names in the library. Answers whether there is one. */
static int beside_set(const char *name, uint32_t value) {
  if (strcmp(name, "ack-timeout") == 0) {
    beside.settings.ack_timeout_us = value;
  } else if (strcmp(name, "max-wait") == 0) {
    beside.settings.max_wait_us = value;
  } else if (strcmp(name, "patience") == 0 && beside.settings.adapts) {
    beside.settings.patience_us = value;
  } else if (strcmp(name, "least-wait") == 0) {
    beside.settings.least_wait_us = value;
  } else {
    return 0;
  }
  return 1;
}

static void beside_view(const millpond_peer *peer) {
  calm_numbers ours;
  millpond_numbers theirs;
  uint32_t last_wait_us;
  SAME(calm_view(&beside.peer, &ours), 0);
  SAME(millpond_view(peer, &theirs), 0);
  SAME(millpond_last_wait(peer, &last_wait_us), 0);
  SAME(calm_last_wait(&beside.peer), last_wait_us);
  SAME(ours.rto_us, theirs.rto_us);
  SAME(ours.samples > 0, theirs.kept >> 1 & 1);
  SAME(ours.srtt_us, theirs.srtt_us);
  SAME(ours.rttvar_us, theirs.rttvar_us);
  SAME(ours.carried_us, theirs.carried_us);
}

static void beside_wait(int32_t answer, const calm_wait *ours, const millpond_wait *theirs) {
  SAME(answer, 0);
  SAME(ours->span_us, theirs->span_us);
  SAME(ours->reason, theirs->reason);
}

static void beside_start(calm_exchange *exchange, const millpond_cx *cx, const millpond_wait *theirs) {
  calm_cx same = beside_cx(cx);
  calm_wait wait;
  int32_t answer = calm_start(&beside.peer, exchange, &same, &wait);
  beside_wait(answer, &wait, theirs);
}

static void beside_timeout(calm_exchange *exchange, const millpond_cx *cx, const millpond_wait *theirs) {
  calm_cx same = beside_cx(cx);
  calm_wait wait;
  int32_t answer = calm_timeout(&beside.peer, exchange, &same, &wait);
  beside_wait(answer, &wait, theirs);
}

/* A name that says "one after the first" says which if there is one only, and else nothing. */
static void beside_reply(calm_exchange *exchange, const millpond_sample *told, const millpond_cx *cx) {
  calm_cx same = beside_cx(cx);
  calm_sample sample;
  memset(&sample, 0, sizeof sample);
  sample.since_first_us = told->since_first_us;
  sample.since_last_us = told->since_last_us;
  sample.kind = told->kind;
  if (told->names == MILLPOND_NAMES_COPY) {
    sample.names = 1;
    sample.named = told->named;
    sample.since_named_us = told->since_named_us;
  } else if (told->names == MILLPOND_NAMES_FURTHER && told->retransmissions == 1) {
    sample.names = 1;
    sample.named = 1;
    sample.since_named_us = told->since_last_us;
  }
  SAME(exchange->retransmissions, told->retransmissions);
  SAME(calm_reply(&beside.peer, exchange, &sample, &same), 0);
}

static void beside_end(calm_exchange *exchange, uint8_t why, const millpond_cx *cx) {
  calm_cx same = beside_cx(cx);
  SAME(calm_end(&beside.peer, exchange, why, &same), 0);
}

static void beside_plain(const millpond_cx *cx) {
  calm_cx same = beside_cx(cx);
  SAME(calm_plain_send(&beside.peer, &same), 0);
}

static void beside_admit(uint8_t message_class, const millpond_cx *cx, int32_t admission, uint64_t at_us) {
  calm_cx same = beside_cx(cx);
  uint64_t ours = 0;
  SAME(calm_admit(&beside.peer, message_class, &same, &ours), admission);
  if (admission == MILLPOND_ADMIT_AT) SAME(ours, at_us);
}

#endif
