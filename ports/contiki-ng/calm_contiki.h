/* calm_contiki.h - Contiki-NG's CoAP transactions under calm; see README.md
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef CALM_CONTIKI_H
#define CALM_CONTIKI_H

#include "../common/calm_message.h"
#include "coap-transactions.h"
#include "coap.h"

/* Milliseconds for coap_timer_set: a copy of this confirmable transaction leaves now, whose token ends with its number. */
uint32_t calm_contiki_leaves(calm_peer *peer, calm_message *message, coap_transaction_t *transaction);

/* A message came whose ID is that of the transaction. */
void calm_contiki_received(calm_peer *peer, calm_message *message, const coap_message_t *came);

/* The transaction is cleared without an answer: given up, or not wanted any more. */
void calm_contiki_ends(calm_peer *peer, calm_message *message, int gave_up);

#endif
