/* calm_message.c: what calm learns of a message's copies, and that an end is told once. */
#include <stdio.h>

#include "calm_message.h"

static unsigned long checks, failed;

#define SAME(made, wanted)                                                                                    \
  do {                                                                                                        \
    long long made_ = (long long)(made), wanted_ = (long long)(wanted);                                       \
    checks++;                                                                                                 \
    if (made_ != wanted_ && failed++ < 20) printf("%d: %s is %lld, not %lld\n", __LINE__, #made, made_, wanted_); \
  } while (0)

static calm_cx at(uint64_t now_us) {
  calm_cx cx = {now_us, 0, 1};
  return cx;
}

static calm_numbers seen(const calm_peer *peer) {
  calm_numbers numbers;
  SAME(calm_view(peer, &numbers), 0);
  return numbers;
}

int main(void) {
  enum { ACK = 2, RST = 3, CONTENT = 0x45 };
  calm_peer peer;
  calm_message message = {{0, 0, 0}, {0}, 0};
  calm_cx cx = at(0);
  uint8_t token[2] = {7, 1};
  int i;
  (void)calm_init(&peer, NULL);
  /* Nothing is under way: nothing happens. */
  calm_message_received(&peer, &message, ACK, 0, token, 0, &cx);
  calm_message_ends(&peer, &message, CALM_END_GAVE_UP, &cx);
  SAME(seen(&peer).samples, 0);
  /* The second copy is named: a round trip of 300 ms, and one copy lost of two. */
  SAME(calm_message_leaves(&peer, &message, &cx), 2000);
  cx = at(2000000);
  SAME(calm_message_leaves(&peer, &message, &cx), 4000);
  cx = at(2300000);
  calm_message_received(&peer, &message, ACK, CONTENT, token, 2, &cx);
  SAME(seen(&peer).srtt_us, 300000);
  SAME(seen(&peer).lost, 300); /* from 200: (4 * 200 + 1000) / 5, and 5 / 6 of that */
  calm_message_ends(&peer, &message, CALM_END_GAVE_UP, &cx); /* it is over already */
  SAME(seen(&peer).carried_us, 0);
  /* A Reset teaches nothing. */
  (void)calm_message_leaves(&peer, &message, &cx);
  calm_message_received(&peer, &message, RST, 0, token, 0, &cx);
  SAME(seen(&peer).samples, 1);
  /* More copies than are remembered: the last is, and a name beyond them names nothing. */
  for (i = 0; i < 8; i++) {
    cx = at(10000000u + (uint64_t)i * 1000000u);
    (void)calm_message_leaves(&peer, &message, &cx);
  }
  token[1] = 7;
  cx = at(17400000);
  calm_message_received(&peer, &message, ACK, CONTENT, token, 2, &cx);
  SAME(seen(&peer).srtt_us, 300000);
  printf("calm_message: %lu checks, %lu failed\n", checks, failed);
  return failed != 0;
}
