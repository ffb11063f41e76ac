/* Stands in for RIOT. */
#include <stdint.h>
typedef struct ztimer_clock ztimer_clock_t;
extern ztimer_clock_t *const ZTIMER_MSEC;
uint32_t ztimer_now(ztimer_clock_t *clock);
