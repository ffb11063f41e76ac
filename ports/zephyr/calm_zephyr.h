/* calm_zephyr.h - the pendings of Zephyr's CoAP library under calm; see README.md
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef CALM_ZEPHYR_H
#define CALM_ZEPHYR_H

#include <zephyr/net/coap.h>

#include "../common/calm_message.h"

/* How many milliseconds a new request to this peer must wait before it leaves; 0 for none. Ask with as many requests open as
 * there will be. */
uint32_t calm_zephyr_admit(const calm_peer *peer, uint16_t open);

/* In place of coap_pending_cycle, for confirmable messages: before the first send, and when the timeout ran out. Names the
 * copy in the last byte of its token, so the request has one of at least a byte, which is 0. False: it was given up. */
bool calm_zephyr_cycle(calm_peer *peer, calm_message *message, struct coap_pending *pending);

/* Before coap_pending_received and coap_response_received: what a message says that answers this one. Takes the name off its
 * token, so that Zephyr knows it again. */
void calm_zephyr_received(calm_peer *peer, calm_message *message, struct coap_packet *response);

/* Before coap_pending_clear for any other reason. */
void calm_zephyr_cancel(calm_peer *peer, calm_message *message);

#endif
