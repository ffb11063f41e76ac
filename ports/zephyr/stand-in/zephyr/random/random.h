/* Stands in for Zephyr. */
#include <stdint.h>
uint32_t sys_rand32_get(void);
