/* Stands in for Contiki-NG's header where Contiki-NG is not: what the glue uses, and nothing else. */
#ifndef STAND_IN_COAP_H
#define STAND_IN_COAP_H
#include <stdint.h>

typedef enum { COAP_TYPE_CON, COAP_TYPE_NON, COAP_TYPE_ACK, COAP_TYPE_RST } coap_message_type_t;

typedef struct {
  coap_message_type_t type;
  uint8_t code, token_len, token[8];
} coap_message_t;
#endif
