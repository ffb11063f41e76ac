/* calm_message.h - one confirmable message under calm.c: its exchange, and when its copies left
 *
 * What the ports to Zephyr, RIOT and Contiki-NG share. The stack keeps one beside each message.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef CALM_MESSAGE_H
#define CALM_MESSAGE_H

#include "../../c/calm.h"

#define CALM_COPIES 5u /* MAX_RETRANSMIT and the first (RFC 7252 section 4.8); of further ones the last is remembered */

typedef struct {
  calm_exchange exchange;
  uint64_t sent_us[CALM_COPIES];
  uint8_t copies; /* that have left; 0 while the message is not under way */
} calm_message;

/* A copy leaves now. How long to wait, in whole milliseconds, rounded up. */
uint32_t calm_message_leaves(calm_peer *peer, calm_message *message, const calm_cx *cx);

/* A message came that answers it: an acknowledgement or Reset with its message ID, or a response with its token but for the
 * last byte, which is the number of a copy. type is as in RFC 7252 section 3; an empty message has no token. Nothing if none is
 * under way. */
void calm_message_received(calm_peer *peer, calm_message *message, uint8_t type, uint8_t code, const uint8_t *token,
                           uint8_t token_len, const calm_cx *cx);

/* It is over for this CALM_END_. Nothing if none is under way, so that the place where a stack frees its messages may call it
 * for each. */
void calm_message_ends(calm_peer *peer, calm_message *message, uint8_t why, const calm_cx *cx);

#endif
