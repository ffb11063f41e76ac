/* A client on libcoap with calm's waits: `client [-r] COUNT ADDRESS PORT PATH` asks an address of IPv4 so often, one after
 * the other. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calm_libcoap.h"

static calm_libcoap calm;
static unsigned answered, failed;

static coap_response_t on_response(coap_session_t *session, const coap_pdu_t *sent, const coap_pdu_t *received,
                                   const coap_mid_t mid) {
  (void)session;
  (void)sent;
  (void)mid;
  calm_libcoap_answered(&calm, received);
  answered++;
  return COAP_RESPONSE_OK;
}

static void on_nack(coap_session_t *session, const coap_pdu_t *sent, coap_nack_reason_t reason, const coap_mid_t mid) {
  (void)session;
  (void)sent;
  calm_libcoap_failed(&calm, reason, mid);
  failed++;
}

/* One request, until it is answered or has failed. */
static void ask(coap_context_t *context, coap_session_t *session, const char *path) {
  coap_pdu_t *pdu = coap_new_pdu(COAP_MESSAGE_CON, COAP_REQUEST_CODE_GET, session);
  uint8_t token[8];
  size_t len;
  uint64_t again_us;
  unsigned before = answered + failed;
  coap_session_new_token(session, &len, token);
  coap_add_token(pdu, len, token);
  coap_add_option(pdu, COAP_OPTION_URI_PATH, strlen(path), (const uint8_t *)path);
  while (calm_libcoap_send(&calm, session, pdu, &again_us) == COAP_INVALID_MID) {
    if (again_us == 0) exit(1);
    coap_io_process(context, (uint32_t)(again_us / 1000u) + 1u);
  }
  printf("waits %u ms\n", (unsigned)(calm.wait_us / 1000u));
  while (answered + failed == before) coap_io_process(context, COAP_IO_WAIT);
}

int main(int count, char **arguments) {
  int is_rfc7252 = count > 1 && strcmp(arguments[1], "-r") == 0, i;
  coap_address_t address;
  coap_context_t *context;
  coap_session_t *session;
  if (count - is_rfc7252 != 5) {
    fputs("usage: client [-r] count address port path\n", stderr);
    return 2;
  }
  arguments += is_rfc7252;
  coap_startup();
  coap_address_init(&address);
  address.addr.sin.sin_family = AF_INET;
  address.addr.sin.sin_port = htons((uint16_t)atoi(arguments[3]));
  address.size = sizeof address.addr.sin;
  if (inet_pton(AF_INET, arguments[2], &address.addr.sin.sin_addr) != 1) {
    fprintf(stderr, "%s is no address of IPv4\n", arguments[2]);
    return 2;
  }
  context = coap_new_context(NULL);
  session = context == NULL ? NULL : coap_new_client_session(context, NULL, &address, COAP_PROTO_UDP);
  if (session == NULL) return 1;
  coap_register_response_handler(context, on_response);
  coap_register_nack_handler(context, on_nack);
  calm_libcoap_init(&calm, !is_rfc7252);
  for (i = 0; i < atoi(arguments[1]); i++) ask(context, session, arguments[4]);
  printf("%u answered, %u failed\n", answered, failed);
  coap_session_release(session);
  coap_free_context(context);
  coap_cleanup();
  return failed != 0;
}
