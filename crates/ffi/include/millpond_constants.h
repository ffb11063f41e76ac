/* millpond_constants.h - the presets and settings for millpond.h
 *
 * A number never changes its meaning, and none is used twice.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 * Made from crates/control/src by `make header`. */

#ifndef MILLPOND_CONSTANTS_H
#define MILLPOND_CONSTANTS_H

/* Published controllers. The manual says where each is described. */
enum {
  /* a dithered 2 s that doubles without a cap and learns nothing */
  MILLPOND_PRESET_RFC7252 = 1,
  /* rfc7252 that keeps a backed-off wait until an answer comes without a retransmission */
  MILLPOND_PRESET_DEFAULT_FB1 = 2,
  /* rfc7252 that keeps a backed-off wait, halved by each answer without a retransmission */
  MILLPOND_PRESET_DEFAULT_FB2 = 3,
  /* doubling up to 32 s; weak samples count as much as strong ones, after any number of copies */
  MILLPOND_PRESET_COCOA_00 = 16,
  /* one factor of 3, 2 or 1.3 for each exchange, no cap, weak samples after one retransmission
   * only */
  MILLPOND_PRESET_COCOA_PLUS = 17,
  /* a factor of 3, 2 or 1.5 chosen at every expiry, up to 32 s; weak samples up to two
   * retransmissions */
  MILLPOND_PRESET_COCOA_03 = 18,
  MILLPOND_PRESET_COCOA_S = 19,                    /* cocoa-03 without weak samples */
  /* CoCoA as Eclipse Californium runs it, with weak samples up to 20 retransmissions */
  MILLPOND_PRESET_COCOA_WEAK_ALL = 20,
  /* copies carry the time they left; every answer that names one is a strong sample */
  MILLPOND_PRESET_COCOA_ECHO = 21,
  /* copies carry their number; an answer to the first one after retransmissions means congestion */
  MILLPOND_PRESET_COCOA_NUMBER = 22,
  /* one bit tells a retransmission from the first; congestion as in cocoa-number, else a guess */
  MILLPOND_PRESET_COCOA_FLAG = 23,
  /* cocoa-03 that keeps a backed-off wait until an answer comes without a retransmission */
  MILLPOND_PRESET_COCOA_FB1 = 24,
  /* cocoa-03 that keeps a wait rebuilt from the larger estimate until an answer comes without a
   * retransmission */
  MILLPOND_PRESET_COCOA_FB2 = 25,
  /* a fast timeout from unambiguous samples, and a slow one that lets queues drain after
   * ambiguous ones */
  MILLPOND_PRESET_FASOR = 48,
  /* fasor with the number of the copy in the token, so that most answers are unambiguous */
  MILLPOND_PRESET_FASOR_TOKEN = 49,
  /* fasor with the number of the copy in an option, so that most answers are unambiguous */
  MILLPOND_PRESET_FASOR_COUNT = 50,
  /* the timer of Linux TCP: slow to believe in less variation, doubled waits kept until a clean
   * answer */
  MILLPOND_PRESET_LINUX_RTO = 64,
  /* the larger of the last two round-trip times and a decaying bonus, doubled waits kept until a
   * clean answer */
  MILLPOND_PRESET_PEAK_HOPPER = 80,
  /* one and a half times the last round-trip time, counted from the first copy up to two
   * retransmissions */
  MILLPOND_PRESET_BASIC_RTO = 96,
  /* a paced rate: one message per RTT more in each RTT, halved when a message is given up */
  MILLPOND_PRESET_COAP_PLUS_RATE = 112,
  /* coap-plus-rate that halves its rate when a message times out for the first time */
  MILLPOND_PRESET_COAP_PLUS_RATE_RESPONSIVE = 113,
  /* paced at the highest delivery rate seen, with at most two bandwidth-delay products under way */
  MILLPOND_PRESET_BBR_CON = 144,
  /* non-confirmable requests paced at the rate of TCP on a path with such losses, from their
   * answers */
  MILLPOND_PRESET_TFRC_NON = 176,
  /* named copies, graded evidence, and a backoff that only proven congestion keeps */
  MILLPOND_PRESET_CALM = 128,
  /* calm without a least wait, and with backoff steps that a long wait does not bound */
  MILLPOND_PRESET_CALM_UNLIMITED = 129
};

/* What can be set, and what it takes. Times are shown in seconds and handed over in
 * microseconds; ratios are handed over in thousandths. */
enum {
  MILLPOND_SETTING_ACK_TIMEOUT = 1,           /* a length of time from 0.001 s to 600 s */
  MILLPOND_SETTING_RANDOM_FACTOR = 2,         /* a ratio from 1 to 10 */
  /* a length of time from 0.001 s to 4294.967295 s, or none */
  MILLPOND_SETTING_MAX_WAIT = 3,
  MILLPOND_SETTING_CARRY = 4,                 /* one of none, full-backoff-1, full-backoff-2 */
  MILLPOND_SETTING_BACKOFF_FACTOR = 5,        /* a ratio from 1.001 to 10 */
  /* a length of time from 0.001 s to 4294.967295 s, or none */
  MILLPOND_SETTING_MAX_ESTIMATE = 6,
  MILLPOND_SETTING_GAINS = 7,                 /* one of rfc6298, swapped */
  MILLPOND_SETTING_STRONG_K = 8,              /* a whole number from 0 to 16 */
  MILLPOND_SETTING_STRONG_SHARE = 9,          /* one of 1, 1/2, 1/4, 1/8 */
  MILLPOND_SETTING_WEAK_K = 10,               /* a whole number from 0 to 16 */
  MILLPOND_SETTING_WEAK_SHARE = 11,           /* one of 1, 1/2, 1/4, 1/8 */
  MILLPOND_SETTING_WEAK_RETRANSMISSIONS = 12, /* a whole number from 0 to 255 */
  /* one of stepwise, per-exchange, by-estimate, last-timer */
  MILLPOND_SETTING_VBF = 13,
  MILLPOND_SETTING_VBF_LOW = 14,              /* a ratio from 1.001 to 10 */
  MILLPOND_SETTING_VBF_MIDDLE = 15,           /* a ratio from 1.001 to 10 */
  MILLPOND_SETTING_VBF_HIGH = 16,             /* a ratio from 1.001 to 10 */
  MILLPOND_SETTING_VBF_SHORT = 17,            /* a length of time from 0 s to 4294.967295 s */
  MILLPOND_SETTING_VBF_LONG = 18,             /* a length of time from 0 s to 4294.967295 s */
  MILLPOND_SETTING_BLIND = 19,                /* one of per-open, doubling, plain */
  /* one of none, draft-03, cocoa+, cocoa-00, cocoa-00-doubling, cocoa-00-eighth */
  MILLPOND_SETTING_AGEING = 20,
  MILLPOND_SETTING_LEARNS_FROM = 21,          /* one of copies, echo, number, flag */
  MILLPOND_SETTING_FASOR_NAMING = 22,         /* one of none, token, count */
  MILLPOND_SETTING_FASOR_INIT = 23,           /* one of text, pseudocode */
  MILLPOND_SETTING_FASOR_DITHER = 24,         /* one of text, none */
  MILLPOND_SETTING_SLOW_FACTOR = 25,          /* a ratio from 1 to 10 */
  /* a length of time from 0.001 s to 4294.967295 s, or none */
  MILLPOND_SETTING_MAX_SLOW = 26,
  MILLPOND_SETTING_GIVE_UP = 27,              /* one of step-down, keep */
  MILLPOND_SETTING_ECHO = 28,                 /* one of trusted, exact-only */
  MILLPOND_SETTING_TIMER_CARRY = 29,          /* one of none, until-clean */
  MILLPOND_SETTING_LINUX_ORDER = 30,          /* one of kernel, californium */
  MILLPOND_SETTING_LEAST_VARIATION = 31,      /* a length of time from 0 s to 600 s */
  MILLPOND_SETTING_PEAK_ORDER = 32,           /* one of californium, original */
  MILLPOND_SETTING_PREVIOUS = 33,             /* one of zero, first-sample */
  MILLPOND_SETTING_FIRST_BONUS = 34,          /* a ratio from 0 to 10 */
  MILLPOND_SETTING_ALPHA = 35,                /* a ratio from 0.001 to 10 */
  MILLPOND_SETTING_RESTART_AFTER = 36,        /* a length of time from 0.001 s to 600 s */
  MILLPOND_SETTING_LOSS_SIGNAL = 37,          /* one of exhausted, first-timeout */
  MILLPOND_SETTING_START_RATE = 38,           /* one of 4-per-rtt, 1-per-rtt, 1-per-second */
  MILLPOND_SETTING_FIRST_RTT = 39,            /* one of probe, default */
  MILLPOND_SETTING_SMOOTHING = 40,            /* one of 1/8, last */
  MILLPOND_SETTING_LEFTOVER = 41,             /* one of retransmitted, dropped */
  MILLPOND_SETTING_RATE_WINDOW = 42,          /* one of none, alpha-t-lambda */
  MILLPOND_SETTING_START_COUNT = 43,          /* one of 2-rtts, 1-rtt */
  MILLPOND_SETTING_INCREASE = 44,             /* one of per-rtt, per-ack */
  MILLPOND_SETTING_SLOWEST = 45,              /* one of 1-per-64-s, 1-per-timeout */
  MILLPOND_SETTING_IN_BACKOFF = 46,           /* one of held, paced */
  MILLPOND_SETTING_RATE_TIMER = 47,           /* one of fixed, rfc6298 */
  MILLPOND_SETTING_ENDS_BACKOFF = 48,         /* one of any-answer, clean-answer */
  /* a length of time from 0.001 s to 4294.967295 s, or none */
  MILLPOND_SETTING_PATIENCE = 49,
  /* one of nothing, delay-pause, falls, long-steps, short-steps, grades, last-bound, last-wait,
   * window */
  MILLPOND_SETTING_WITHOUT = 50,
  MILLPOND_SETTING_INITIAL_WINDOW = 51,       /* a whole number from 0 to 10 */
  MILLPOND_SETTING_LEAST_WAIT = 52            /* a length of time from 0 s to 600 s */
};

/* The value of a length of time that may be none. */
#define MILLPOND_UNLIMITED 0xffffffffu

/* The values of settings that take one of several words. */
enum {
  MILLPOND_CARRY_NONE = 0,
  MILLPOND_CARRY_FULL_BACKOFF_1 = 1,
  MILLPOND_CARRY_FULL_BACKOFF_2 = 2
};

enum {
  MILLPOND_GAINS_RFC6298 = 0,
  MILLPOND_GAINS_SWAPPED = 1
};

enum {
  MILLPOND_STRONG_SHARE_1 = 0,
  MILLPOND_STRONG_SHARE_1_2 = 1,
  MILLPOND_STRONG_SHARE_1_4 = 2,
  MILLPOND_STRONG_SHARE_1_8 = 3
};

enum {
  MILLPOND_WEAK_SHARE_1 = 0,
  MILLPOND_WEAK_SHARE_1_2 = 1,
  MILLPOND_WEAK_SHARE_1_4 = 2,
  MILLPOND_WEAK_SHARE_1_8 = 3
};

enum {
  MILLPOND_VBF_STEPWISE = 0,
  MILLPOND_VBF_PER_EXCHANGE = 1,
  MILLPOND_VBF_BY_ESTIMATE = 2,
  MILLPOND_VBF_LAST_TIMER = 3
};

enum {
  MILLPOND_BLIND_PER_OPEN = 0,
  MILLPOND_BLIND_DOUBLING = 1,
  MILLPOND_BLIND_PLAIN = 2
};

enum {
  MILLPOND_AGEING_NONE = 0,
  MILLPOND_AGEING_DRAFT_03 = 1,
  MILLPOND_AGEING_COCOA_PLUS = 2,
  MILLPOND_AGEING_COCOA_00 = 3,
  MILLPOND_AGEING_COCOA_00_DOUBLING = 4,
  MILLPOND_AGEING_COCOA_00_EIGHTH = 5
};

enum {
  MILLPOND_LEARNS_FROM_COPIES = 0,
  MILLPOND_LEARNS_FROM_ECHO = 1,
  MILLPOND_LEARNS_FROM_NUMBER = 2,
  MILLPOND_LEARNS_FROM_FLAG = 3
};

enum {
  MILLPOND_FASOR_NAMING_NONE = 0,
  MILLPOND_FASOR_NAMING_TOKEN = 1,
  MILLPOND_FASOR_NAMING_COUNT = 2
};

enum {
  MILLPOND_FASOR_INIT_TEXT = 0,
  MILLPOND_FASOR_INIT_PSEUDOCODE = 1
};

enum {
  MILLPOND_FASOR_DITHER_TEXT = 0,
  MILLPOND_FASOR_DITHER_NONE = 1
};

enum {
  MILLPOND_GIVE_UP_STEP_DOWN = 0,
  MILLPOND_GIVE_UP_KEEP = 1
};

enum {
  MILLPOND_ECHO_TRUSTED = 0,
  MILLPOND_ECHO_EXACT_ONLY = 1
};

enum {
  MILLPOND_TIMER_CARRY_NONE = 0,
  MILLPOND_TIMER_CARRY_UNTIL_CLEAN = 1
};

enum {
  MILLPOND_LINUX_ORDER_KERNEL = 0,
  MILLPOND_LINUX_ORDER_CALIFORNIUM = 1
};

enum {
  MILLPOND_PEAK_ORDER_CALIFORNIUM = 0,
  MILLPOND_PEAK_ORDER_ORIGINAL = 1
};

enum {
  MILLPOND_PREVIOUS_ZERO = 0,
  MILLPOND_PREVIOUS_FIRST_SAMPLE = 1
};

enum {
  MILLPOND_LOSS_SIGNAL_EXHAUSTED = 0,
  MILLPOND_LOSS_SIGNAL_FIRST_TIMEOUT = 1
};

enum {
  MILLPOND_START_RATE_4_PER_RTT = 0,
  MILLPOND_START_RATE_1_PER_RTT = 1,
  MILLPOND_START_RATE_1_PER_SECOND = 2
};

enum {
  MILLPOND_FIRST_RTT_PROBE = 0,
  MILLPOND_FIRST_RTT_DEFAULT = 1
};

enum {
  MILLPOND_SMOOTHING_1_8 = 0,
  MILLPOND_SMOOTHING_LAST = 1
};

enum {
  MILLPOND_LEFTOVER_RETRANSMITTED = 0,
  MILLPOND_LEFTOVER_DROPPED = 1
};

enum {
  MILLPOND_RATE_WINDOW_NONE = 0,
  MILLPOND_RATE_WINDOW_ALPHA_T_LAMBDA = 1
};

enum {
  MILLPOND_START_COUNT_2_RTTS = 0,
  MILLPOND_START_COUNT_1_RTT = 1
};

enum {
  MILLPOND_INCREASE_PER_RTT = 0,
  MILLPOND_INCREASE_PER_ACK = 1
};

enum {
  MILLPOND_SLOWEST_1_PER_64_S = 0,
  MILLPOND_SLOWEST_1_PER_TIMEOUT = 1
};

enum {
  MILLPOND_IN_BACKOFF_HELD = 0,
  MILLPOND_IN_BACKOFF_PACED = 1
};

enum {
  MILLPOND_RATE_TIMER_FIXED = 0,
  MILLPOND_RATE_TIMER_RFC6298 = 1
};

enum {
  MILLPOND_ENDS_BACKOFF_ANY_ANSWER = 0,
  MILLPOND_ENDS_BACKOFF_CLEAN_ANSWER = 1
};

enum {
  MILLPOND_WITHOUT_NOTHING = 0,
  MILLPOND_WITHOUT_DELAY_PAUSE = 1,
  MILLPOND_WITHOUT_FALLS = 2,
  MILLPOND_WITHOUT_LONG_STEPS = 3,
  MILLPOND_WITHOUT_SHORT_STEPS = 4,
  MILLPOND_WITHOUT_GRADES = 5,
  MILLPOND_WITHOUT_LAST_BOUND = 6,
  MILLPOND_WITHOUT_LAST_WAIT = 7,
  MILLPOND_WITHOUT_WINDOW = 8
};

#endif
