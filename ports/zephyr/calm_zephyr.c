#include "calm_zephyr.h"

#include <zephyr/kernel.h>
#include <zephyr/random/random.h>

static calm_cx context(uint16_t open) {
  calm_cx cx = {(uint64_t)k_uptime_get() * 1000u, sys_rand32_get(), open};
  return cx;
}

/* Where the last byte of a token is; NULL if there is none. */
static uint8_t *name_of(uint8_t *data) {
  uint8_t len = data[0] & 0x0fu;
  return ((len == 0u) || (len > COAP_TOKEN_MAX_LEN)) ? NULL : &data[4u + len - 1u];
}

uint32_t calm_zephyr_admit(const calm_peer *peer, uint16_t open) {
  calm_cx cx = context(open);
  uint64_t at_us = cx.now_us;
  int32_t admission = calm_admit(peer, CALM_CLASS_CONFIRMABLE, &cx, &at_us);
  /* When an exchange ends nobody calls: look again soon. */
  return (admission == CALM_ADMIT_WHEN_ONE_ENDS) ? 500u : (uint32_t)((at_us - cx.now_us + 999u) / 1000u);
}

bool calm_zephyr_cycle(calm_peer *peer, calm_message *message, struct coap_pending *pending) {
  calm_cx cx = context(1);
  uint8_t *name = name_of(pending->data);
  if (pending->timeout != 0u) {
    if (pending->retries == 0u) {
      calm_message_ends(peer, message, CALM_END_GAVE_UP, &cx);
      return false;
    }
    pending->retries--;
  }
  if (name != NULL) {
    *name = message->copies;
  }
  pending->t0 = k_uptime_get();
  pending->timeout = calm_message_leaves(peer, message, &cx);
  return true;
}

void calm_zephyr_received(calm_peer *peer, calm_message *message, struct coap_packet *response) {
  calm_cx cx = context(1);
  uint8_t *name = name_of(response->data);
  calm_message_received(peer, message, coap_header_get_type(response), coap_header_get_code(response), name,
                        (uint8_t)((name == NULL) ? 0u : 1u), &cx);
  if (name != NULL) {
    *name = 0u;
  }
}

void calm_zephyr_cancel(calm_peer *peer, calm_message *message) {
  calm_cx cx = context(1);
  calm_message_ends(peer, message, CALM_END_CANCELLED, &cx);
}
