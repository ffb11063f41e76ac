/* Stands in for Zephyr. */
#include <stdint.h>
int64_t k_uptime_get(void);
