/* Stands in for RIOT's header where RIOT is not: what the glue uses, and nothing else. */
#include <stdint.h>

typedef struct {
  uint8_t *buf;
} coap_pkt_t;

unsigned coap_get_type(const coap_pkt_t *pkt);
unsigned coap_get_code_raw(const coap_pkt_t *pkt);
unsigned coap_get_token_len(const coap_pkt_t *pkt);
void *coap_get_token(const coap_pkt_t *pkt);
