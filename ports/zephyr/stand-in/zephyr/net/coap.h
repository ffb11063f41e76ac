/* Stands in for Zephyr's header where Zephyr is not: what the glue uses, and nothing else. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COAP_TOKEN_MAX_LEN 8U

struct coap_packet {
  uint8_t *data;
};

struct coap_pending {
  int64_t t0;
  uint32_t timeout;
  uint8_t *data;
  uint8_t retries;
};

uint8_t coap_header_get_type(const struct coap_packet *packet);
uint8_t coap_header_get_code(const struct coap_packet *packet);
