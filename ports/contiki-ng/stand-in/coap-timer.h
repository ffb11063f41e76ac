/* Stands in for Contiki-NG. */
#include <stdint.h>
uint64_t coap_timer_uptime(void);
