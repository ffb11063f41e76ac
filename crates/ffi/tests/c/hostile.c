/* What no caller should do: every mistake has its error, and none does harm. */
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "millpond.h"

/* One of each algorithm. */
static const uint16_t presets[] = {MILLPOND_PRESET_RFC7252,   MILLPOND_PRESET_COCOA_03,    MILLPOND_PRESET_FASOR,
                                   MILLPOND_PRESET_LINUX_RTO, MILLPOND_PRESET_PEAK_HOPPER, MILLPOND_PRESET_BASIC_RTO, MILLPOND_PRESET_CALM};
#define PRESETS (sizeof presets / sizeof presets[0])

/* Every call with this peer and exchange; answers what most of them answered. */
typedef struct {
  int32_t set, admit, start, timeout, reply, end, plain, feedback, wishes, last_wait, view, base_rtt, recall;
} answers;

static answers call_everything(millpond_peer *peer, millpond_exchange *exchange) {
  millpond_cx cx = {7, 1, 1, 0};
  millpond_wait wait;
  millpond_sample sample;
  millpond_feedback known;
  millpond_numbers numbers;
  millpond_exchange other;
  uint64_t at_us;
  uint32_t base_rtt_us, last_wait_us;
  answers all;
  memset(&sample, 0, sizeof sample);
  memset(&known, 0, sizeof known);
  all.view = millpond_view(peer, &numbers);
  all.wishes = millpond_wishes(peer);
  all.admit = millpond_admit(peer, MILLPOND_CLASS_PLAIN, 1, &cx, &at_us);
  all.timeout = millpond_on_timeout(peer, exchange, &cx, &wait);
  all.reply = millpond_on_reply(peer, exchange, &sample, &cx);
  all.end = millpond_on_end(peer, exchange, MILLPOND_END_RESET, &cx);
  all.plain = millpond_on_plain_send(peer, 1, &cx);
  all.feedback = millpond_on_feedback(peer, &known, &cx);
  all.last_wait = millpond_last_wait(peer, &last_wait_us);
  all.base_rtt = millpond_peer_base_rtt(peer, &base_rtt_us);
  all.recall = millpond_peer_recall(peer, 240000);
  all.set = millpond_peer_set(peer, MILLPOND_SETTING_ACK_TIMEOUT, 1000000);
  all.start = millpond_on_start(peer, &other, 1, &cx, &wait);
  return all;
}

static void all_refuse(millpond_peer *peer, millpond_exchange *exchange, int32_t error) {
  answers all = call_everything(peer, exchange);
  SAME(all.set, error);
  SAME(all.admit, error);
  SAME(all.start, error);
  SAME(all.timeout, error);
  SAME(all.reply, error);
  SAME(all.end, error);
  SAME(all.plain, error);
  SAME(all.feedback, error);
  SAME(all.wishes, error);
  SAME(all.view, error);
  SAME(all.last_wait, error);
  SAME(all.base_rtt, error);
  SAME(all.recall, error);
}

static void started(uint16_t preset, millpond_peer *peer, millpond_exchange *exchange) {
  millpond_cx cx = {7, 1, 1, 0};
  millpond_wait wait;
  SAME(millpond_peer_init(peer, MILLPOND_SIZES, preset), 0);
  SAME(millpond_on_start(peer, exchange, 40, &cx, &wait), 0);
}

static void null_pointers(void) {
  millpond_peer peer;
  millpond_exchange exchange;
  millpond_cx cx = {7, 1, 1, 0};
  millpond_wait wait;
  millpond_sample sample;
  uint64_t at_us;
  char text[8];
  memset(&sample, 0, sizeof sample);
  SAME(millpond_peer_init(NULL, MILLPOND_SIZES, MILLPOND_PRESET_RFC7252), MILLPOND_E_NULL);
  started(MILLPOND_PRESET_COCOA_03, &peer, &exchange);
  all_refuse(NULL, &exchange, MILLPOND_E_NULL);
  SAME(millpond_admit(&peer, 0, 1, NULL, &at_us), MILLPOND_E_NULL);
  SAME(millpond_admit(&peer, 0, 1, &cx, NULL), MILLPOND_E_NULL);
  SAME(millpond_on_start(&peer, NULL, 1, &cx, &wait), MILLPOND_E_NULL);
  SAME(millpond_on_start(&peer, &exchange, 1, NULL, &wait), MILLPOND_E_NULL);
  SAME(millpond_on_start(&peer, &exchange, 1, &cx, NULL), MILLPOND_E_NULL);
  SAME(millpond_on_timeout(&peer, NULL, &cx, &wait), MILLPOND_E_NULL);
  SAME(millpond_on_timeout(&peer, &exchange, NULL, &wait), MILLPOND_E_NULL);
  SAME(millpond_on_timeout(&peer, &exchange, &cx, NULL), MILLPOND_E_NULL);
  SAME(millpond_on_reply(&peer, NULL, &sample, &cx), MILLPOND_E_NULL);
  SAME(millpond_on_reply(&peer, &exchange, NULL, &cx), MILLPOND_E_NULL);
  SAME(millpond_on_reply(&peer, &exchange, &sample, NULL), MILLPOND_E_NULL);
  SAME(millpond_on_end(&peer, NULL, 0, &cx), MILLPOND_E_NULL);
  SAME(millpond_on_end(&peer, &exchange, 0, NULL), MILLPOND_E_NULL);
  SAME(millpond_on_plain_send(&peer, 1, NULL), MILLPOND_E_NULL);
  SAME(millpond_on_feedback(&peer, NULL, &cx), MILLPOND_E_NULL);
  SAME(millpond_view(&peer, NULL), MILLPOND_E_NULL);
  SAME(millpond_last_wait(&peer, NULL), MILLPOND_E_NULL);
  SAME(millpond_peer_base_rtt(&peer, NULL), MILLPOND_E_NULL);
  SAME(millpond_preset_id(NULL), MILLPOND_E_NULL);
  SAME(millpond_preset_nearest(NULL), MILLPOND_E_NULL);
  SAME(millpond_setting_id(&peer, NULL), MILLPOND_E_NULL);
  SAME(millpond_setting_id(NULL, "carry"), MILLPOND_E_NULL);
  SAME(millpond_setting_word(MILLPOND_SETTING_CARRY, NULL), MILLPOND_E_NULL);
  SAME(millpond_preset_name(MILLPOND_PRESET_RFC7252, NULL, 8), MILLPOND_E_NULL);
  SAME(millpond_peer_conflict(NULL, text, 8), MILLPOND_E_NULL);
  /* None of these did anything: the exchange is still open. */
  SAME(millpond_on_end(&peer, &exchange, MILLPOND_END_CANCELLED, &cx), 0);
}

static void misaligned_pointers(void) {
  uint64_t room[16];
  millpond_exchange exchange;
  millpond_peer peer;
  millpond_peer *askew = (millpond_peer *)(void *)((char *)room + 4);
  SAME(millpond_peer_init(askew, MILLPOND_SIZES, MILLPOND_PRESET_RFC7252), MILLPOND_E_ALIGNMENT);
  started(MILLPOND_PRESET_RFC7252, &peer, &exchange);
  all_refuse(askew, &exchange, MILLPOND_E_ALIGNMENT);
}

static void a_peer_that_was_never_initialised(void) {
  millpond_peer peer;
  millpond_exchange exchange;
  int byte;
  started(MILLPOND_PRESET_COCOA_03, &peer, &exchange);
  for (byte = 0; byte < 256; byte++) {
    answers all;
    memset(&peer, byte, sizeof peer);
    all = call_everything(&peer, &exchange);
    EXPECT(all.start == MILLPOND_E_BLANK || all.start == MILLPOND_E_FOREIGN, "filled with %02x: %d", byte, (int)all.start);
  }
  memset(&peer, 0, sizeof peer);
  all_refuse(&peer, &exchange, MILLPOND_E_BLANK);
  memset(&peer, 0xff, sizeof peer);
  all_refuse(&peer, &exchange, MILLPOND_E_BLANK);
}

static void an_exchange_that_was_never_started(void) {
  millpond_peer peer;
  millpond_exchange exchange;
  answers all;
  SAME(millpond_peer_init(&peer, MILLPOND_SIZES, MILLPOND_PRESET_COCOA_03), 0);
  memset(&exchange, 0, sizeof exchange);
  all = call_everything(&peer, &exchange);
  SAME(all.timeout, MILLPOND_E_BLANK);
  SAME(all.reply, MILLPOND_E_BLANK);
  SAME(all.end, MILLPOND_E_BLANK);
}

static void records_of_another_kind(void) {
  millpond_peer peer, other;
  millpond_exchange exchange;
  millpond_cx cx = {7, 1, 1, 0};
  millpond_wait wait;
  union {
    millpond_exchange exchange;
    millpond_peer peer;
  } room;
  /* An exchange where a peer should be, and the reverse. */
  started(MILLPOND_PRESET_COCOA_03, &peer, &exchange);
  memset(&room, 0, sizeof room);
  room.exchange = exchange;
  all_refuse(&room.peer, &exchange, MILLPOND_E_FOREIGN);
  room.peer = peer;
  SAME(millpond_on_timeout(&peer, &room.exchange, &cx, &wait), MILLPOND_E_FOREIGN);
  /* An exchange that another algorithm's peer started. */
  started(MILLPOND_PRESET_RFC7252, &other, &room.exchange);
  SAME(millpond_on_timeout(&peer, &room.exchange, &cx, &wait), MILLPOND_E_FOREIGN);
  SAME(millpond_on_timeout(&other, &room.exchange, &cx, &wait), 0);
}

/* One byte changed, each in turn and in every way: the record is refused, unless the byte is padding. */
static void damaged_records(void) {
  size_t preset, byte;
  for (preset = 0; preset < PRESETS; preset++) {
    millpond_peer peer, hurt;
    millpond_exchange exchange, bruised;
    millpond_cx cx = {9, 1, 1, 0};
    millpond_wait wait;
    unsigned long refused = 0;
    int with;
    started(presets[preset], &peer, &exchange);
    for (byte = 0; byte < sizeof peer; byte++) {
      for (with = 1; with < 256; with++) {
        int32_t answer;
        hurt = peer;
        ((unsigned char *)&hurt)[byte] ^= (unsigned char)with;
        bruised = exchange;
        answer = millpond_on_timeout(&hurt, &bruised, &cx, &wait);
        EXPECT(answer == 0 || answer == MILLPOND_E_DAMAGED || (byte < 4 && answer < 0), "byte %u: %d", (unsigned)byte,
               (int)answer);
        refused += answer != 0;
        if (answer == 0) {
          /* Padding, or behind the controller of this preset: it changes nothing. */
          millpond_wait same;
          hurt = peer;
          bruised = exchange;
          SAME(millpond_on_timeout(&hurt, &bruised, &cx, &same), 0);
          SAME(wait.span_us, same.span_us);
        }
      }
    }
    EXPECT(refused > 24 * 255, "only %lu changes are noticed", refused);
    for (byte = 0; byte < sizeof exchange; byte++) {
      for (with = 1; with < 256; with++) {
        hurt = peer;
        bruised = exchange;
        ((unsigned char *)&bruised)[byte] ^= (unsigned char)with;
        EXPECT(millpond_on_timeout(&hurt, &bruised, &cx, &wait) < 0, "byte %u with %02x", (unsigned)byte, with);
      }
    }
  }
}

/* Whatever the bytes are, nothing worse than an error comes of them. */
static void random_bytes(void) {
  uint32_t word = 7252;
  long round;
  size_t i;
  for (round = 0; round < 200000; round++) {
    millpond_peer peer;
    millpond_exchange exchange;
    answers all;
    for (i = 0; i < sizeof peer / 8; i++) {
      word = word * 1664525u + 1013904223u;
      peer.w[i] = (uint64_t)word << 32 | (word >> 7);
    }
    for (i = 0; i < sizeof exchange / 8; i++) {
      word = word * 1664525u + 1013904223u;
      exchange.w[i] = (uint64_t)word << 32 | (word >> 3);
    }
    /* Every other time the first byte is right. */
    if (round & 1) memcpy(&peer, "\x50", 1);
    all = call_everything(&peer, &exchange);
    EXPECT(all.start < 0 && all.view < 0 && all.set < 0, "round %ld was taken for a peer", round);
  }
}

/* The same memory twice: an error sooner or later, and nothing worse. */
static void overlapping_records(void) {
  union {
    millpond_peer peer;
    struct {
      uint64_t head[2];
      millpond_exchange exchange;
    } inside;
    struct {
      uint64_t head[2];
      millpond_wait wait;
    } below;
  } room;
  millpond_cx cx = {7, 1, 1, 0};
  millpond_wait wait;
  SAME(millpond_peer_init(&room.peer, MILLPOND_SIZES, MILLPOND_PRESET_COCOA_03), 0);
  SAME(millpond_on_start(&room.peer, &room.inside.exchange, 40, &cx, &wait), 0);
  SAME(millpond_on_start(&room.peer, &room.inside.exchange, 40, &cx, &wait), MILLPOND_E_DAMAGED);
  SAME(millpond_peer_init(&room.peer, MILLPOND_SIZES, MILLPOND_PRESET_COCOA_03), 0);
  cx.now_us = 123456789;
  SAME(millpond_on_start(&room.peer, &room.inside.exchange, 40, &cx, &room.below.wait), 0);
  SAME(millpond_on_start(&room.peer, &room.inside.exchange, 40, &cx, &wait), MILLPOND_E_DAMAGED);
}

static void presets_that_are_none(void) {
  millpond_peer peer;
  millpond_exchange exchange;
  started(MILLPOND_PRESET_RFC7252, &peer, &exchange);
  SAME(millpond_peer_init(&peer, MILLPOND_SIZES, 0), MILLPOND_E_UNKNOWN_PRESET);
  /* A failed initialisation leaves no peer. */
  all_refuse(&peer, &exchange, MILLPOND_E_BLANK);
  SAME(millpond_peer_init(&peer, MILLPOND_SIZES, 0xffff), MILLPOND_E_UNKNOWN_PRESET);
}

int main(void) {
  null_pointers();
  misaligned_pointers();
  a_peer_that_was_never_initialised();
  an_exchange_that_was_never_started();
  records_of_another_kind();
  damaged_records();
  random_bytes();
  overlapping_records();
  presets_that_are_none();
  return verdict("hostile");
}
