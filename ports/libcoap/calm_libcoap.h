/* calm_libcoap.h - libcoap's first waits from calm, by libcoap's public interface alone; see README.md
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef CALM_LIBCOAP_H
#define CALM_LIBCOAP_H

#include <coap3/coap.h>

#include "../../c/calm.h"

/* One for each client session over UDP, beside it. */
typedef struct {
  calm_settings settings;
  calm_peer peer;
  calm_exchange exchange;
  uint64_t first_us; /* when the request left that is open */
  uint32_t wait_us;  /* its first wait; libcoap doubles it for each copy */
  coap_mid_t mid;    /* COAP_INVALID_MID while none is open */
  uint8_t token[8];
  size_t token_len;
} calm_libcoap;

/* No wait below 1 s: libcoap takes no shorter ACK_TIMEOUT. */
void calm_libcoap_init(calm_libcoap *c, int adapts);

/* Sends a confirmable request, one at a time. Not yet: answers COAP_INVALID_MID, leaves the PDU to the caller, and writes
 * when to ask again, in microseconds from now; 0 means when the open one ends. */
coap_mid_t calm_libcoap_send(calm_libcoap *c, coap_session_t *session, coap_pdu_t *pdu, uint64_t *again_us);

/* For the response handler, and the NACK handler, of the session's context. */
void calm_libcoap_answered(calm_libcoap *c, const coap_pdu_t *received);
void calm_libcoap_failed(calm_libcoap *c, coap_nack_reason_t reason, coap_mid_t mid);

#endif
