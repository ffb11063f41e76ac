/* A program that was compiled with the header of another version: other sizes, the same names. It gets a clear error
 * and keeps its memory. */
#include <stdint.h>
#include <string.h>

#include "expect.h"

/* As in a header before peers and exchanges grew. */
typedef struct {
  uint64_t w[6];
} millpond_peer;
typedef struct {
  uint64_t w[2];
} millpond_exchange;
typedef struct {
  uint64_t now_us;
  uint32_t chance;
  uint16_t open;
  uint16_t waiting;
} millpond_cx;
typedef struct {
  uint32_t span_us;
  uint8_t then;
  uint8_t reason;
  uint16_t reserved;
} millpond_wait;

#define MILLPOND_SIZES(sample, numbers)                                                           \
  ((uint32_t)(sizeof(millpond_peer) / 8) << 24 | (uint32_t)(sizeof(millpond_exchange) / 8) << 18 | \
   (uint32_t)(sizeof(millpond_cx) / 4) << 14 | (uint32_t)(sizeof(millpond_wait) / 4) << 10 |       \
   (uint32_t)(sample) / 4 << 5 | (uint32_t)(numbers) / 4)

int32_t millpond_peer_init(millpond_peer *peer, uint32_t sizes, uint16_t preset);
int32_t millpond_on_start(millpond_peer *peer, millpond_exchange *exchange, uint16_t len,
                          const millpond_cx *cx, millpond_wait *wait);
const char *millpond_error_text(int32_t error);

int main(void) {
  struct {
    millpond_peer peer;
    uint64_t behind_peer[8];
    millpond_exchange exchange;
    uint64_t behind_exchange[8];
  } room;
  millpond_cx cx = {7, 1, 1, 0};
  millpond_wait wait;
  size_t i;
  uint32_t sizes[] = {MILLPOND_SIZES(16, 28), MILLPOND_SIZES(12, 24), (uint32_t)sizeof(millpond_peer), 0, 0xffffffffu};
  for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    size_t word;
    memset(&room, 0xa5, sizeof room);
    SAME(millpond_peer_init(&room.peer, sizes[i], 1), -3);
    /* A caller that does not look at the answer. */
    SAME(millpond_on_start(&room.peer, &room.exchange, 40, &cx, &wait), -9);
    for (word = 0; word < 8; word++) {
      SAME(room.behind_peer[word] == UINT64_C(0xa5a5a5a5a5a5a5a5), 1);
      SAME(room.behind_exchange[word] == UINT64_C(0xa5a5a5a5a5a5a5a5), 1);
    }
  }
  EXPECT(strstr(millpond_error_text(-3), "header") != NULL, "the text is: %s", millpond_error_text(-3));
  return verdict("old_header");
}
