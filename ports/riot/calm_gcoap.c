#include "calm_gcoap.h"

#include "random.h"
#include "ztimer.h"

static calm_cx context(calm_gcoap *c) {
  calm_cx cx = {calm_clock_now(c->clock, ztimer_now(ZTIMER_MSEC)), random_uint32(), 1};
  return cx;
}

void calm_gcoap_clock_init(calm_clock *clock) { (void)calm_clock_init(clock, 1000u, ztimer_now(ZTIMER_MSEC)); }

uint32_t calm_gcoap_leaves(calm_gcoap *c, uint8_t *pdu) {
  calm_cx cx = context(c);
  uint8_t len = pdu[0] & 0x0fu;
  if ((len > 0u) && (len <= 8u)) {
    pdu[4u + len - 1u] = c->message.copies;
  }
  return calm_message_leaves(c->peer, &c->message, &cx);
}

void calm_gcoap_received(calm_gcoap *c, const coap_pkt_t *pdu) {
  calm_cx cx = context(c);
  calm_message_received(c->peer, &c->message, (uint8_t)coap_get_type(pdu), (uint8_t)coap_get_code_raw(pdu),
                        coap_get_token(pdu), (uint8_t)coap_get_token_len(pdu), &cx);
}

void calm_gcoap_expires(calm_gcoap *c, int gave_up) {
  calm_cx cx = context(c);
  calm_message_ends(c->peer, &c->message, (uint8_t)(gave_up ? CALM_END_GAVE_UP : CALM_END_CANCELLED), &cx);
}
