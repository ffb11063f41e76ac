/* A program for a library of calm alone: nothing is known of CoCoA. */
#include "expect.h"
#include "millpond.h"

int main(void) {
  millpond_peer peer;
  millpond_exchange exchange;
  millpond_wait wait;
  millpond_cx cx = {0};
  uint32_t base_rtt_us = 17;
  SAME(sizeof peer, 96);
  SAME(millpond_peer_init(&peer, MILLPOND_SIZES, MILLPOND_PRESET_COCOA_03), MILLPOND_E_UNKNOWN_PRESET);
  SAME(millpond_peer_init(&peer, MILLPOND_SIZES, MILLPOND_PRESET_CALM), 0);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_WITHOUT, 1), MILLPOND_E_UNKNOWN_SETTING);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_LEAST_WAIT, 2500000), 0);
  cx.open = 1;
  SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
  SAME(wait.span_us, 2500000); /* 2 s by itself, if chance is 0 */
  cx.now_us = wait.span_us;
  SAME(millpond_on_timeout(&peer, &exchange, &cx, &wait), 0);
  SAME(wait.span_us, 5000000); /* the first step to a stranger is two, as by the standard */
  SAME(millpond_on_end(&peer, &exchange, MILLPOND_END_GAVE_UP, &cx), 0);
  SAME(millpond_peer_recall(&peer, 240000), 0); /* late, but before any answer */
  SAME(millpond_peer_base_rtt(&peer, &base_rtt_us), 0);
  SAME(base_rtt_us, 0);
  return verdict("calm_alone");
}
