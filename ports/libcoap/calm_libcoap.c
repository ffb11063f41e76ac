#include "calm_libcoap.h"

#include <string.h>

static uint64_t now_us(void) {
  coap_tick_t now;
  coap_ticks(&now);
  return (uint64_t)now * 1000000u / COAP_TICKS_PER_SECOND;
}

static calm_cx context(uint64_t at_us) {
  calm_cx cx = {at_us, 0, 1};
  coap_prng(&cx.chance, sizeof cx.chance);
  return cx;
}

void calm_libcoap_init(calm_libcoap *c, int adapts) {
  c->settings = adapts ? calm_default : calm_rfc7252;
  c->settings.least_wait_us = 1000000;
  c->mid = COAP_INVALID_MID;
  (void)calm_init(&c->peer, &c->settings);
}

/* The wait as libcoap takes it: whole milliseconds, rounded up, and not spread once more. */
static void set_wait(coap_session_t *session, uint32_t wait_us) {
  uint32_t ms = wait_us / 1000u + (wait_us % 1000u != 0u ? 1u : 0u);
  coap_fixed_point_t wait = {(uint16_t)(ms / 1000u), (uint16_t)(ms % 1000u)}, one = {1, 0};
  coap_session_set_ack_timeout(session, wait);
  coap_session_set_ack_random_factor(session, one);
}

coap_mid_t calm_libcoap_send(calm_libcoap *c, coap_session_t *session, coap_pdu_t *pdu, uint64_t *again_us) {
  calm_cx cx = context(now_us());
  calm_wait wait;
  uint64_t at_us = cx.now_us;
  coap_bin_const_t token = coap_pdu_get_token(pdu);
  *again_us = 0;
  if (c->mid != COAP_INVALID_MID || token.length > sizeof c->token) return COAP_INVALID_MID;
  if (calm_admit(&c->peer, CALM_CLASS_CONFIRMABLE, &cx, &at_us) == CALM_ADMIT_AT) {
    *again_us = at_us - cx.now_us;
    return COAP_INVALID_MID;
  }
  (void)calm_start(&c->peer, &c->exchange, &cx, &wait);
  set_wait(session, wait.span_us);
  c->first_us = cx.now_us;
  c->wait_us = wait.span_us;
  c->token_len = token.length;
  if (token.length > 0) memcpy(c->token, token.s, token.length); /* the PDU is libcoap's from now on */
  c->mid = coap_send(session, pdu);
  if (c->mid == COAP_INVALID_MID) (void)calm_end(&c->peer, &c->exchange, CALM_END_CANCELLED, &cx);
  return c->mid;
}

/* How many copies have followed the first one by then, and when the last of them left. libcoap does not say, but its timer
 * doubles: the n-th leaves 2 to the n, less one, first waits after the first. */
static uint8_t retransmissions_by(calm_libcoap *c, uint64_t at_us, uint8_t most, uint64_t *last_us) {
  uint64_t next_us = c->first_us + c->wait_us, wait_us = c->wait_us;
  uint8_t count = 0;
  *last_us = c->first_us;
  while (count < most && next_us <= at_us) {
    calm_cx cx = context(next_us);
    calm_wait unused;
    (void)calm_timeout(&c->peer, &c->exchange, &cx, &unused);
    *last_us = next_us;
    wait_us *= 2u;
    next_us += wait_us;
    count++;
  }
  return count;
}

void calm_libcoap_answered(calm_libcoap *c, const coap_pdu_t *received) {
  coap_bin_const_t token = coap_pdu_get_token(received);
  calm_cx cx = context(now_us());
  calm_sample sample = {0, 0, 0, 0, 0, 0};
  uint64_t last_us;
  if (c->mid == COAP_INVALID_MID || token.length != c->token_len || memcmp(token.s, c->token, token.length) != 0) return;
  (void)retransmissions_by(c, cx.now_us, COAP_DEFAULT_MAX_RETRANSMIT, &last_us);
  sample.since_first_us = (uint32_t)(cx.now_us - c->first_us);
  sample.since_last_us = (uint32_t)(cx.now_us - last_us);
  sample.kind = coap_pdu_get_type(received) == COAP_MESSAGE_ACK ? CALM_KIND_PIGGYBACKED : CALM_KIND_SEPARATE;
  (void)calm_reply(&c->peer, &c->exchange, &sample, &cx);
  c->mid = COAP_INVALID_MID;
}

void calm_libcoap_failed(calm_libcoap *c, coap_nack_reason_t reason, coap_mid_t mid) {
  calm_cx cx = context(now_us());
  uint64_t last_us;
  uint8_t why = CALM_END_CANCELLED;
  if (c->mid == COAP_INVALID_MID || mid != c->mid) return;
  if (reason == COAP_NACK_TOO_MANY_RETRIES) why = CALM_END_GAVE_UP;
  if (reason == COAP_NACK_RST) why = CALM_END_RESET;
  (void)retransmissions_by(c, cx.now_us, COAP_DEFAULT_MAX_RETRANSMIT, &last_us);
  (void)calm_end(&c->peer, &c->exchange, why, &cx);
  c->mid = COAP_INVALID_MID;
}
