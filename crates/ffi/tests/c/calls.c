/* Every call: what it answers, what it writes, what it refuses. */
#include <stddef.h>
#include <string.h>

#include "expect.h"
#include "millpond.h"

#define SECOND 1000000u

static millpond_cx at(uint64_t now_us) {
  millpond_cx cx = {0, 0, 1, 0};
  cx.now_us = now_us;
  return cx;
}

static millpond_sample answer(uint32_t since_first_us, uint32_t since_last_us, uint8_t retransmissions) {
  millpond_sample sample;
  memset(&sample, 0, sizeof sample);
  sample.since_first_us = since_first_us;
  sample.since_last_us = since_last_us;
  sample.retransmissions = retransmissions;
  sample.kind = MILLPOND_KIND_PIGGYBACKED;
  return sample;
}

static millpond_peer peer_of(uint16_t preset) {
  millpond_peer peer;
  SAME(millpond_peer_init(&peer, MILLPOND_SIZES, preset), 0);
  return peer;
}

static void sizes_are_those_of_the_header(void) {
  SAME(sizeof(millpond_peer), 96);
  SAME(sizeof(millpond_exchange), 32);
  SAME(sizeof(millpond_cx), 16);
  SAME(sizeof(millpond_wait), 8);
  SAME(sizeof(millpond_sample), 20);
  SAME(sizeof(millpond_feedback), 16);
  SAME(sizeof(millpond_numbers), 28);
  SAME(offsetof(millpond_cx, chance), 8);
  SAME(offsetof(millpond_cx, waiting), 14);
  SAME(offsetof(millpond_sample, named), 15);
  SAME(offsetof(millpond_sample, reply_len), 18);
  SAME(offsetof(millpond_feedback, fate), 9);
  SAME(offsetof(millpond_wait, reason), 5);
  SAME(millpond_version(), MILLPOND_VERSION);
}

/* RFC 7252, sections 4.2 and 4.8: 2 s to 3 s, then twice as long each time. */
static void a_message_without_an_answer(void) {
  millpond_peer peer = peer_of(MILLPOND_PRESET_RFC7252);
  millpond_exchange exchange;
  millpond_wait wait;
  millpond_cx cx = at(0);
  unsigned copy;
  uint32_t expected = 2 * SECOND;
  SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
  SAME(wait.span_us, expected);
  SAME(wait.then, MILLPOND_THEN_RETRANSMIT);
  SAME(wait.reason, MILLPOND_REASON_INITIAL);
  SAME(wait.reserved, 0);
  for (copy = 1; copy <= 4; copy++) {
    cx.now_us += wait.span_us;
    expected *= 2;
    SAME(millpond_on_timeout(&peer, &exchange, &cx, &wait), 0);
    SAME(wait.span_us, expected);
    SAME(wait.reason, MILLPOND_REASON_BACKED_OFF);
  }
  cx.now_us += wait.span_us;
  SAME(millpond_on_end(&peer, &exchange, MILLPOND_END_GAVE_UP, &cx), 0);
  SAME(millpond_on_end(&peer, &exchange, MILLPOND_END_GAVE_UP, &cx), MILLPOND_E_ENDED);

  cx.chance = 0xffffffffu;
  SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
  SAME(wait.span_us, 3 * SECOND);
}

/* draft-ietf-core-cocoa-03, section 4: the first sample of 0.8 s makes RTO = (2 + 0.8 + 4 * 0.4) / 2 s. */
static void an_answer_moves_the_estimate(void) {
  millpond_peer peer = peer_of(MILLPOND_PRESET_COCOA_03), copy;
  millpond_exchange exchange;
  millpond_wait wait;
  millpond_numbers numbers;
  millpond_cx cx = at(0);
  millpond_sample sample = answer(800000, 800000, 0);
  SAME(millpond_view(&peer, &numbers), 0);
  SAME(numbers.kept, 1);
  SAME(numbers.rto_us, 2 * SECOND);
  SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
  SAME(wait.reason, MILLPOND_REASON_BLIND);
  cx.now_us = 800000;
  SAME(millpond_on_reply(&peer, &exchange, &sample, &cx), 0);
  SAME(millpond_on_reply(&peer, &exchange, &sample, &cx), MILLPOND_E_ENDED);
  SAME(millpond_view(&peer, &numbers), 0);
  SAME(numbers.kept, 7);
  SAME(numbers.rto_us, 2200000);
  SAME(numbers.srtt_us, 800000);
  SAME(numbers.rttvar_us, 400000);
  SAME(numbers.weak_srtt_us, 0);

  /* A peer is plain memory. */
  memcpy(&copy, &peer, sizeof copy);
  memset(&peer, 0, sizeof peer);
  SAME(millpond_view(&peer, &numbers), MILLPOND_E_BLANK);
  SAME(millpond_view(&copy, &numbers), 0);
  SAME(numbers.rto_us, 2200000);

  /* A separate response is no sample. */
  SAME(millpond_on_start(&copy, &exchange, 40, &cx, &wait), 0);
  SAME(wait.span_us, 2200000);
  SAME(wait.reason, MILLPOND_REASON_INITIAL);
  sample.kind = MILLPOND_KIND_SEPARATE;
  SAME(millpond_on_reply(&copy, &exchange, &sample, &cx), 0);
  SAME(millpond_view(&copy, &numbers), 0);
  SAME(numbers.rto_us, 2200000);
}

/* Four exchanges of a tenth of a millisecond, as over loopback, and then silence: without a least wait CoCoA's copies leave
   before a server would acknowledge that takes its time. */
static void a_least_wait_holds_whatever_was_learnt(void) {
  static const uint32_t least[] = {0, 200000};
  unsigned place, exchanges, copy;
  for (place = 0; place < 2; place++) {
    millpond_peer peer = peer_of(MILLPOND_PRESET_COCOA_03);
    millpond_exchange exchange;
    millpond_wait wait;
    millpond_cx cx = at(0);
    millpond_sample sample = answer(100, 100, 0);
    SAME(millpond_peer_set(&peer, MILLPOND_SETTING_LEAST_WAIT, least[place]), 0);
    SAME(millpond_peer_set(&peer, MILLPOND_SETTING_LEAST_WAIT, 600000001u), MILLPOND_E_OUT_OF_RANGE);
    /* Another setting leaves it as it is. */
    SAME(millpond_peer_set(&peer, MILLPOND_SETTING_MAX_WAIT, 60 * SECOND), 0);
    for (exchanges = 0; exchanges < 4; exchanges++) {
      SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
      cx.now_us += 100;
      SAME(millpond_on_reply(&peer, &exchange, &sample, &cx), 0);
    }
    SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
    if (place == 0) {
      /* 2 s, halved four times, with what the round trips add. */
      SAME(wait.span_us, 125199);
    }
    for (copy = 0; copy < 4; copy++) {
      SAME(wait.span_us >= least[place], 1);
      cx.now_us += wait.span_us;
      SAME(millpond_on_timeout(&peer, &exchange, &cx, &wait), 0);
    }
    SAME(millpond_on_end(&peer, &exchange, MILLPOND_END_GAVE_UP, &cx), 0);
  }
}

/* The same section: an exchange with one retransmission is a weak sample, from its first copy. */
static void an_answer_after_a_retransmission(void) {
  millpond_peer peer = peer_of(MILLPOND_PRESET_COCOA_03);
  millpond_exchange exchange;
  millpond_wait wait;
  millpond_numbers numbers;
  millpond_cx cx = at(0);
  millpond_sample sample = answer(2500000, 500000, 1);
  SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
  cx.now_us = 2 * SECOND;
  SAME(millpond_on_timeout(&peer, &exchange, &cx, &wait), 0);
  cx.now_us = 2500000;
  SAME(millpond_on_reply(&peer, &exchange, &sample, &cx), 0);
  SAME(millpond_view(&peer, &numbers), 0);
  SAME(numbers.kept, 1 | 8 | 16);
  SAME(numbers.weak_srtt_us, 2500000);
  SAME(numbers.weak_rttvar_us, 1250000);
}

/* "Is CoAP Congestion Safe?" (ANRW 2018), section 4.2: the next exchange starts from the backed-off wait. */
static void a_wait_is_carried_over(void) {
  millpond_peer peer = peer_of(MILLPOND_PRESET_DEFAULT_FB1);
  millpond_exchange exchange;
  millpond_wait wait;
  millpond_numbers numbers;
  millpond_cx cx = at(0);
  millpond_sample sample = answer(3 * SECOND, SECOND, 1);
  SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
  cx.now_us = 2 * SECOND;
  SAME(millpond_on_timeout(&peer, &exchange, &cx, &wait), 0);
  cx.now_us = 3 * SECOND;
  SAME(millpond_on_reply(&peer, &exchange, &sample, &cx), 0);
  SAME(millpond_view(&peer, &numbers), 0);
  SAME(numbers.kept, 1 | 32);
  SAME(numbers.carried_us, 4 * SECOND);
  SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
  SAME(wait.span_us, 4 * SECOND);
  SAME(wait.reason, MILLPOND_REASON_CARRIED);
}

/* draft-ietf-core-cocoa-03, section 5: after a message of 40 bytes nothing of its kind for one RTO. */
static void plain_messages_are_held_back(void) {
  millpond_peer peer = peer_of(MILLPOND_PRESET_COCOA_03);
  millpond_cx cx = at(5 * SECOND);
  uint64_t at_us = 17;
  SAME(millpond_admit(&peer, MILLPOND_CLASS_PLAIN, 40, &cx, &at_us), MILLPOND_ADMIT_NOW);
  SAME(at_us, 17);
  SAME(millpond_on_plain_send(&peer, 40, &cx), 0);
  SAME(millpond_admit(&peer, MILLPOND_CLASS_PLAIN, 40, &cx, &at_us), MILLPOND_ADMIT_AT);
  SAME(at_us, 7 * SECOND);
  SAME(millpond_admit(&peer, MILLPOND_CLASS_CONFIRMABLE, 40, &cx, &at_us), MILLPOND_ADMIT_NOW);
  SAME(millpond_admit(&peer, 2, 40, &cx, &at_us), MILLPOND_E_ARGUMENT);
  /* "among any 16 in a row at least two": one in eight, and no names for copies. */
  SAME(millpond_wishes(&peer), 8 << 8 | MILLPOND_NAMING_NONE);
  peer = peer_of(MILLPOND_PRESET_COCOA_FLAG);
  SAME(millpond_wishes(&peer), 8 << 8 | MILLPOND_NAMING_FLAG);
}

static void an_answer_may_name_its_copy(void) {
  millpond_peer peer = peer_of(MILLPOND_PRESET_COCOA_NUMBER);
  millpond_exchange exchange;
  millpond_wait wait;
  millpond_numbers numbers;
  millpond_cx cx = at(0);
  millpond_sample sample = answer(2500000, 500000, 1);
  SAME(millpond_wishes(&peer) & 0xff, MILLPOND_NAMING_COUNT);
  SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
  SAME(millpond_on_timeout(&peer, &exchange, &cx, &wait), 0);
  sample.names = MILLPOND_NAMES_COPY;
  sample.named = 1;
  sample.since_named_us = 500000;
  SAME(millpond_on_reply(&peer, &exchange, &sample, &cx), 0);
  SAME(millpond_view(&peer, &numbers), 0);
  SAME(numbers.srtt_us, 500000);

  SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
  sample.names = 3;
  SAME(millpond_on_reply(&peer, &exchange, &sample, &cx), MILLPOND_E_ARGUMENT);
  sample.names = MILLPOND_NAMES_FURTHER;
  sample.kind = 3;
  SAME(millpond_on_reply(&peer, &exchange, &sample, &cx), MILLPOND_E_ARGUMENT);
  sample.kind = MILLPOND_KIND_EMPTY_ACK;
  SAME(millpond_on_reply(&peer, &exchange, &sample, &cx), 0);
}

static void settings(void) {
  millpond_peer peer = peer_of(MILLPOND_PRESET_RFC7252);
  millpond_exchange exchange;
  millpond_wait wait;
  millpond_cx cx = at(0);
  char text[80];
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_ACK_TIMEOUT, 500000), 0);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_RANDOM_FACTOR, 1000), 0);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_BACKOFF_FACTOR, 3000), 0);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_CARRY, MILLPOND_CARRY_FULL_BACKOFF_1), 0);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_MAX_WAIT, 800000), 0);
  cx.chance = 0xffffffffu;
  SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
  SAME(wait.span_us, 500000);
  SAME(millpond_on_timeout(&peer, &exchange, &cx, &wait), 0);
  SAME(wait.span_us, 800000);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_MAX_WAIT, MILLPOND_UNLIMITED), 0);
  SAME(millpond_on_timeout(&peer, &exchange, &cx, &wait), 0);
  SAME(wait.span_us, 2400000);

  SAME(millpond_peer_set(&peer, 0, 1), MILLPOND_E_UNKNOWN_SETTING);
  SAME(millpond_peer_set(&peer, 0xffff, 1), MILLPOND_E_UNKNOWN_SETTING);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_AGEING, 0), MILLPOND_E_UNKNOWN_SETTING);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_ACK_TIMEOUT, 0), MILLPOND_E_OUT_OF_RANGE);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_ACK_TIMEOUT, 0xffffffffu), MILLPOND_E_OUT_OF_RANGE);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_RANDOM_FACTOR, 999), MILLPOND_E_OUT_OF_RANGE);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_RANDOM_FACTOR, 1000000), MILLPOND_E_OUT_OF_RANGE);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_CARRY, 3), MILLPOND_E_OUT_OF_RANGE);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_CARRY, 0xffffffffu), MILLPOND_E_OUT_OF_RANGE);

  /* Contradictory: nothing is served until they go together. */
  peer = peer_of(MILLPOND_PRESET_COCOA_03);
  SAME(millpond_peer_conflict(&peer, text, sizeof text), 0);
  EXPECT(text[0] == 0, "a text: %s", text);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_VBF_SHORT, 5 * SECOND), MILLPOND_E_CONFLICT);
  SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), MILLPOND_E_CONFLICT);
  SAME(millpond_on_plain_send(&peer, 40, &cx), MILLPOND_E_CONFLICT);
  SAME(millpond_peer_recall(&peer, SECOND), MILLPOND_E_CONFLICT);
  EXPECT(millpond_peer_conflict(&peer, text, sizeof text) > 0, "no text");
  EXPECT(strstr(text, "vbf-short") && strstr(text, "vbf-long"), "the text is: %s", text);
  SAME(millpond_peer_set(&peer, MILLPOND_SETTING_VBF_LONG, 6 * SECOND), 0);
  SAME(millpond_on_start(&peer, &exchange, 40, &cx, &wait), 0);
}

static void names(void) {
  millpond_peer peer = peer_of(MILLPOND_PRESET_COCOA_03);
  char text[16];
  memset(text, '#', sizeof text);
  SAME(millpond_preset_id("cocoa-03"), MILLPOND_PRESET_COCOA_03);
  SAME(millpond_preset_id("cocoa-3"), MILLPOND_E_UNKNOWN_PRESET);
  SAME(millpond_preset_id(""), MILLPOND_E_UNKNOWN_PRESET);
  SAME(millpond_preset_nearest("cocoa-3"), MILLPOND_PRESET_COCOA_03);
  SAME(millpond_preset_nearest("Cocoa03"), MILLPOND_PRESET_COCOA_03);
  SAME(millpond_preset_nearest("faser"), MILLPOND_PRESET_FASOR);
  SAME(millpond_preset_nearest("calm"), MILLPOND_PRESET_CALM);
  SAME(millpond_preset_nearest("rfc-7252"), MILLPOND_PRESET_RFC7252);
  SAME(millpond_preset_nearest("bbr"), MILLPOND_E_UNKNOWN_PRESET);
  SAME(millpond_preset_nearest(""), MILLPOND_E_UNKNOWN_PRESET);
  SAME(millpond_preset_nearest("a name that is longer than that of any preset there is"), MILLPOND_E_UNKNOWN_PRESET);
  SAME(millpond_preset_name(MILLPOND_PRESET_COCOA_03, text, sizeof text), 8);
  EXPECT(strcmp(text, "cocoa-03") == 0, "the name is %s", text);
  SAME(millpond_preset_name(MILLPOND_PRESET_COCOA_03, text, 4), 8);
  EXPECT(strcmp(text, "coc") == 0, "cut, the name is %s", text);
  text[0] = '#';
  SAME(millpond_preset_name(MILLPOND_PRESET_COCOA_03, text, 0), 8);
  SAME(text[0], '#');
  SAME(millpond_preset_name(9999, text, sizeof text), MILLPOND_E_UNKNOWN_PRESET);
  SAME(millpond_setting_id(&peer, "max-wait"), MILLPOND_SETTING_MAX_WAIT);
  SAME(millpond_setting_id(&peer, "backoff-factor"), MILLPOND_E_UNKNOWN_SETTING);
  SAME(millpond_setting_word(MILLPOND_SETTING_AGEING, "cocoa+"), MILLPOND_AGEING_COCOA_PLUS);
  SAME(millpond_setting_word(MILLPOND_SETTING_AGEING, "cocoa"), MILLPOND_E_OUT_OF_RANGE);
  SAME(millpond_setting_word(MILLPOND_SETTING_MAX_WAIT, "cocoa"), MILLPOND_E_OUT_OF_RANGE);
  SAME(millpond_setting_word(9999, "cocoa"), MILLPOND_E_UNKNOWN_SETTING);
  SAME(millpond_setting_name(MILLPOND_SETTING_VBF_LOW, text, sizeof text), 7);
  EXPECT(strcmp(text, "vbf-low") == 0, "the name is %s", text);
  EXPECT(millpond_setting_takes(MILLPOND_SETTING_VBF_LOW, text, sizeof text) > 0, "no text");
  EXPECT(strcmp(text, "a ratio from 1.") == 0, "the text is %s", text);
}

static void every_error_has_a_text(void) {
  int32_t error, other;
  for (error = MILLPOND_E_NULL; error >= MILLPOND_E_ENDED; error--) {
    EXPECT(strcmp(millpond_error_text(error), "unknown error") != 0, "error %d", (int)error);
    for (other = MILLPOND_E_NULL; other > error; other--) {
      EXPECT(strcmp(millpond_error_text(error), millpond_error_text(other)) != 0, "error %d", (int)error);
    }
  }
  EXPECT(strcmp(millpond_error_text(MILLPOND_E_ENDED - 1), "unknown error") == 0, "one more error");
  EXPECT(strcmp(millpond_error_text(0), "no error") == 0, "zero");
}

/* What became of a plain message may be told, and words that are none are refused. */
static void what_became_of_plain_messages_is_told(void) {
  millpond_peer peer = peer_of(MILLPOND_PRESET_COCOA_03);
  millpond_cx cx = at(SECOND);
  millpond_feedback known;
  memset(&known, 0, sizeof known);
  known.since_us = 800000;
  known.len = 40;
  known.reply_len = 100;
  SAME(millpond_on_feedback(&peer, &known, &cx), 0);
  known.message = MILLPOND_MESSAGE_BLOCK;
  known.fate = MILLPOND_FATE_LOST;
  SAME(millpond_on_feedback(&peer, &known, &cx), 0);
  known.message = 3;
  SAME(millpond_on_feedback(&peer, &known, &cx), MILLPOND_E_ARGUMENT);
  known.message = 0;
  known.fate = 3;
  SAME(millpond_on_feedback(&peer, &known, &cx), MILLPOND_E_ARGUMENT);
}

/* One exchange that takes so long without a retransmission. */
static void exchanged(millpond_peer *peer, uint64_t now_us, uint32_t rtt_us) {
  millpond_exchange exchange;
  millpond_wait wait;
  millpond_cx cx = at(now_us);
  millpond_sample sample = answer(rtt_us, rtt_us, 0);
  SAME(millpond_on_start(peer, &exchange, 40, &cx, &wait), 0);
  cx.now_us += rtt_us;
  SAME(millpond_on_reply(peer, &exchange, &sample, &cx), 0);
}

/* Until when a peer that remembers this, and then took 10 s for its first answer, is held back. */
static uint64_t held_until_us(uint32_t remembered_us) {
  millpond_peer peer = peer_of(MILLPOND_PRESET_CALM);
  millpond_cx cx = at(11 * SECOND);
  uint64_t at_us = 0;
  SAME(millpond_peer_recall(&peer, remembered_us), 0);
  exchanged(&peer, SECOND, 10 * SECOND);
  SAME(millpond_admit(&peer, MILLPOND_CLASS_CONFIRMABLE, 40, &cx, &at_us),
       at_us ? MILLPOND_ADMIT_AT : MILLPOND_ADMIT_NOW);
  return at_us;
}

/* docs/calm.md, Memory over restarts. */
static void a_base_round_trip_outlives_a_restart(void) {
  millpond_peer peer = peer_of(MILLPOND_PRESET_CALM), before;
  uint32_t base_rtt_us = 17;
  SAME(millpond_peer_base_rtt(&peer, &base_rtt_us), 0);
  SAME(base_rtt_us, 0);
  exchanged(&peer, SECOND, 240000);
  SAME(millpond_peer_base_rtt(&peer, &base_rtt_us), 0);
  SAME(base_rtt_us, 240000);
  /* After a certain sample a memory comes too late. */
  before = peer;
  SAME(millpond_peer_recall(&peer, 1000), 0);
  SAME(memcmp(&peer, &before, sizeof peer), 0);

  /* What is only remembered is not handed on. */
  peer = peer_of(MILLPOND_PRESET_CALM);
  SAME(millpond_peer_recall(&peer, base_rtt_us), 0);
  SAME(millpond_peer_base_rtt(&peer, &base_rtt_us), 0);
  SAME(base_rtt_us, 0);

  /* With the lowest word of chance the pause is half of one round trip; nonsense holds nothing back. */
  SAME(held_until_us(240000), 16 * SECOND);
  SAME(held_until_us(1), 16 * SECOND);
  SAME(held_until_us(0), 0);
  SAME(held_until_us(10 * SECOND), 0);
  SAME(held_until_us(0xffffffffu), 0);

  /* An algorithm that keeps none takes it, and stays as it is. */
  peer = peer_of(MILLPOND_PRESET_COCOA_03);
  exchanged(&peer, SECOND, 240000);
  base_rtt_us = 17;
  SAME(millpond_peer_base_rtt(&peer, &base_rtt_us), 0);
  SAME(base_rtt_us, 0);
  peer = before = peer_of(MILLPOND_PRESET_COCOA_03);
  SAME(millpond_peer_recall(&peer, 240000), 0);
  SAME(memcmp(&peer, &before, sizeof peer), 0);
}

int main(void) {
  sizes_are_those_of_the_header();
  a_message_without_an_answer();
  an_answer_moves_the_estimate();
  a_least_wait_holds_whatever_was_learnt();
  an_answer_after_a_retransmission();
  a_wait_is_carried_over();
  plain_messages_are_held_back();
  what_became_of_plain_messages_is_told();
  a_base_round_trip_outlives_a_restart();
  an_answer_may_name_its_copy();
  settings();
  names();
  every_error_has_a_text();
  return verdict("calls");
}
