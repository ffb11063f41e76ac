#include "calm_message.h"

enum { ACK = 2, RST = 3 };

static uint8_t place_of(uint8_t copy) { return (copy < CALM_COPIES) ? copy : (uint8_t)(CALM_COPIES - 1u); }

uint32_t calm_message_leaves(calm_peer *peer, calm_message *message, const calm_cx *cx) {
  calm_wait wait;
  if (message->copies == 0u) {
    (void)calm_start(peer, &message->exchange, cx, &wait);
  } else {
    (void)calm_timeout(peer, &message->exchange, cx, &wait);
  }
  message->sent_us[place_of(message->copies)] = cx->now_us;
  if (message->copies < UINT8_MAX) {
    message->copies++;
  }
  return (wait.span_us / 1000u) + (((wait.span_us % 1000u) != 0u) ? 1u : 0u);
}

/* Since a copy left; nothing if the clock went back. */
static uint32_t since(const calm_message *message, uint8_t copy, const calm_cx *cx) {
  uint64_t sent_us = message->sent_us[place_of(copy)];
  return (cx->now_us > sent_us) ? (uint32_t)(cx->now_us - sent_us) : 0u;
}

void calm_message_ends(calm_peer *peer, calm_message *message, uint8_t why, const calm_cx *cx) {
  if (message->copies > 0u) {
    (void)calm_end(peer, &message->exchange, why, cx);
    message->copies = 0u;
  }
}

/* What kind of answer it is; the caller has excluded a Reset. */
static uint8_t kind_of(uint8_t type, uint8_t code) {
  if (type != ACK) {
    return CALM_KIND_SEPARATE;
  }
  return (uint8_t)((code == 0u) ? CALM_KIND_EMPTY_ACK : CALM_KIND_PIGGYBACKED);
}

void calm_message_received(calm_peer *peer, calm_message *message, uint8_t type, uint8_t code, const uint8_t *token,
                           uint8_t token_len, const calm_cx *cx) {
  calm_sample sample = {0u, 0u, 0u, 0u, 0u, 0u};
  if (message->copies == 0u) {
    return;
  }
  if (type == RST) {
    calm_message_ends(peer, message, CALM_END_RESET, cx);
    return;
  }
  sample.kind = kind_of(type, code);
  sample.since_first_us = since(message, 0u, cx);
  sample.since_last_us = since(message, (uint8_t)(message->copies - 1u), cx);
  if ((code != 0u) && (token_len > 0u) && (token[token_len - 1u] < message->copies) && (token[token_len - 1u] < CALM_COPIES)) {
    sample.names = 1u;
    sample.named = token[token_len - 1u];
    sample.since_named_us = since(message, sample.named, cx);
  }
  (void)calm_reply(peer, &message->exchange, &sample, cx);
  message->copies = 0u;
}
