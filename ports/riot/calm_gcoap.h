/* calm_gcoap.h - gcoap's request memos under calm; see README.md
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef CALM_GCOAP_H
#define CALM_GCOAP_H

#include "../common/calm_message.h"
#include "net/nanocoap.h"

/* Beside each confirmable gcoap_request_memo_t. The peer is that of the memo's remote; the clock is one for all. */
typedef struct {
  calm_peer *peer;
  calm_clock *clock;
  calm_message message;
} calm_gcoap;

/* Once, before the first memo. */
void calm_gcoap_clock_init(calm_clock *clock);

/* Milliseconds for event_timeout_set: a copy of this PDU leaves now, whose token ends with its number from here on. */
uint32_t calm_gcoap_leaves(calm_gcoap *c, uint8_t *pdu);

/* A PDU came that answers the memo, by message ID or by token without its last byte. */
void calm_gcoap_received(calm_gcoap *c, const coap_pkt_t *pdu);

/* The memo expires: after the last wait, or because nobody wants the answer. */
void calm_gcoap_expires(calm_gcoap *c, int gave_up);

#endif
