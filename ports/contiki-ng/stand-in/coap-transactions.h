/* Stands in for Contiki-NG. */
#include <stdint.h>
typedef struct {
  uint8_t message[128];
} coap_transaction_t;
