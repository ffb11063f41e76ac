/* Stands in for RIOT. */
#include <stdint.h>
uint32_t random_uint32(void);
