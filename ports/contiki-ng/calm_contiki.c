#include "calm_contiki.h"

#include "coap-timer.h"
#include "lib/random.h"

static calm_cx context(void) {
  uint32_t high = random_rand(); /* 16 bits each */
  calm_cx cx = {coap_timer_uptime() * 1000u, (high << 16) | random_rand(), 1};
  return cx;
}

uint32_t calm_contiki_leaves(calm_peer *peer, calm_message *message, coap_transaction_t *transaction) {
  calm_cx cx = context();
  uint8_t len = transaction->message[0] & 0x0fu;
  if ((len > 0u) && (len <= 8u)) {
    transaction->message[4u + len - 1u] = message->copies;
  }
  return calm_message_leaves(peer, message, &cx);
}

void calm_contiki_received(calm_peer *peer, calm_message *message, const coap_message_t *came) {
  calm_cx cx = context();
  calm_message_received(peer, message, (uint8_t)came->type, came->code, came->token, came->token_len, &cx);
}

void calm_contiki_ends(calm_peer *peer, calm_message *message, int gave_up) {
  calm_cx cx = context();
  calm_message_ends(peer, message, (uint8_t)(gave_up ? CALM_END_GAVE_UP : CALM_END_CANCELLED), &cx);
}
