/* millpond.h - congestion control for CoAP, one peer at a time
 *
 * A controller is a millpond_peer in your memory. It answers two questions: may this message leave
 * now, and how long until its next copy? It has no clock, no chance, no heap and no callback: time
 * and random words are arguments. Your message layer calls it at these points:
 *
 *   a confirmable message leaves for the first time     millpond_on_start       arm your timer
 *   its timer expires and a retransmission leaves       millpond_on_timeout     arm it again
 *   its answer comes                                    millpond_on_reply
 *   it ends without one                                 millpond_on_end
 *
 * Every call answers a number that is not negative, or a MILLPOND_E_. There may be any number of
 * peers, anywhere; two threads must not use the same one at once.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 * Made from crates/ffi/src by `make header`. */

#ifndef MILLPOND_H
#define MILLPOND_H

#include <stdint.h>

#include "millpond_constants.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MILLPOND_VERSION 0x000100u /* one byte each: major, minor, patch */

/* The controller of one peer. millpond_peer_init makes it; its words are not yours to look at.
 * It holds no pointer: copy it with memcpy, keep it where you like, forget it when you like. */
typedef struct {
  uint64_t w[12]; /* opaque */
} millpond_peer;

/* What goes with one confirmable message from its first copy to its end. Keep it beside the
 * message. millpond_on_start makes it. */
typedef struct {
  uint64_t w[4]; /* opaque */
} millpond_exchange;

/* What a call may know. */
typedef struct {
  uint64_t now_us;  /* the time in microseconds since an origin of yours; never goes back */
  uint32_t chance;  /* 32 random bits, fresh for each call */
  uint16_t open;    /* exchanges open with this peer, the one the call is about included */
  uint16_t waiting; /* messages held back for this peer */
} millpond_cx;

/* How long to wait, and what then. */
typedef struct {
  uint32_t span_us;  /* how long, in microseconds */
  uint8_t then;      /* a MILLPOND_THEN_ */
  uint8_t reason;    /* a MILLPOND_REASON_: why so long, for traces */
  uint16_t reserved; /* zero */
} millpond_wait;

/* What follows when a wait runs out. */
enum {
  MILLPOND_THEN_RETRANSMIT = 0, /* a retransmission leaves, if your limit allows one */
  MILLPOND_THEN_ABANDON = 1     /* the exchange ends without an answer */
};

/* Why a wait is as long as it is. */
enum {
  MILLPOND_REASON_INITIAL = 0,    /* first copy, timed by the estimate or the default */
  MILLPOND_REASON_BACKED_OFF = 1, /* a later copy */
  MILLPOND_REASON_SLOW = 2,       /* timed by a separate, slow estimate */
  MILLPOND_REASON_CARRIED = 3,    /* first copy, timed by a wait kept from an earlier exchange */
  MILLPOND_REASON_BLIND = 4,      /* first copy to a peer that was never measured */
  MILLPOND_REASON_OTHER = 255     /* one that this header does not know yet */
};

/* What an answer says about the path. Set all of it to zero, then what you know. */
typedef struct {
  uint32_t since_first_us; /* microseconds since the first copy left */
  uint32_t since_last_us;  /* microseconds since the last copy left */
  uint32_t since_named_us; /* microseconds since the copy that it names (MILLPOND_NAMES_COPY) */
  uint8_t retransmissions; /* retransmissions */
  uint8_t kind;            /* a MILLPOND_KIND_ */
  uint8_t names;           /* a MILLPOND_NAMES_ */
  uint8_t named;           /* the number of that copy, 0 being the first (MILLPOND_NAMES_COPY) */
  uint16_t len;            /* bytes of one copy of the message; 0 if you do not say */
  uint16_t reply_len;      /* bytes of the answer; 0 if you do not say */
} millpond_sample;

/* What kind of message the answer is. */
enum {
  MILLPOND_KIND_EMPTY_ACK = 0,   /* an empty acknowledgement */
  MILLPOND_KIND_PIGGYBACKED = 1, /* a response inside the acknowledgement */
  MILLPOND_KIND_SEPARATE = 2     /* a separate response, before or instead of the acknowledgement */
};

/* Which copy the answer names. */
enum {
  MILLPOND_NAMES_NOTHING = 0, /* none */
  MILLPOND_NAMES_COPY = 1,    /* the copy whose number is given */
  MILLPOND_NAMES_FURTHER = 2  /* one after the first, not said which */
};

/* What became of a message that nobody acknowledges. Set all of it to zero, then what you know. */
typedef struct {
  uint32_t since_us;  /* microseconds since it left */
  uint16_t len;       /* bytes of it */
  uint16_t reply_len; /* bytes of the answer (MILLPOND_FATE_ANSWERED) */
  uint8_t message;    /* a MILLPOND_MESSAGE_: what it was */
  uint8_t fate;       /* a MILLPOND_FATE_ */
  uint16_t reserved;  /* zero */
  /* of a request: how many plain requests had left to this peer before it, wrapping */
  uint32_t number;
} millpond_feedback;

/* What a message was that nobody acknowledges. */
enum {
  MILLPOND_MESSAGE_REQUEST = 0, /* a request that awaits an answer */
  MILLPOND_MESSAGE_FURTHER = 1, /* a response beyond the first to its request: a notification */
  MILLPOND_MESSAGE_BLOCK = 2    /* a block of a body in bursts (RFC 9177) */
};

/* What became of it. */
enum {
  MILLPOND_FATE_ANSWERED = 0, /* it drew an answer, which came now */
  MILLPOND_FATE_ARRIVED = 1,  /* it arrived, as the answer to another message says */
  MILLPOND_FATE_LOST = 2      /* it is lost */
};

/* Why an exchange ended without an answer. */
enum {
  MILLPOND_END_GAVE_UP = 0,  /* the wait after the last copy ran out */
  MILLPOND_END_RESET = 1,    /* the peer sent a Reset */
  MILLPOND_END_CANCELLED = 2 /* nobody wants the answer any more */
};

/* Whether a message opens an exchange. */
enum {
  MILLPOND_CLASS_CONFIRMABLE = 0, /* it does: the peer acknowledges it */
  MILLPOND_CLASS_PLAIN = 1        /* it does not: nobody acknowledges it */
};

/* What millpond_admit answers. */
enum {
  MILLPOND_ADMIT_NOW = 0,          /* the message may leave */
  MILLPOND_ADMIT_AT = 1,           /* nothing leaves before *at_us; ask again then */
  MILLPOND_ADMIT_WHEN_ONE_ENDS = 2 /* ask again when an exchange with this peer ends */
};

/* How the algorithm wants the copies of a message to be distinguished: the low byte of what
 * millpond_wishes answers. */
enum {
  MILLPOND_NAMING_NONE = 0,     /* not at all */
  MILLPOND_NAMING_TOKEN = 1,    /* by a number in the token */
  MILLPOND_NAMING_COUNT = 2,    /* by a number in an option */
  MILLPOND_NAMING_FLAG = 3,     /* by one bit in an option: the first, or a further one */
  MILLPOND_NAMING_TIMESTAMP = 4 /* by the time at which each left */
};

/* Numbers for traces and reports, never for decisions. Those that a controller does not keep are
 * zero. */
typedef struct {
  uint32_t kept;           /* a bit for each number that is kept, the lowest for rto_us */
  uint32_t rto_us;         /* timeout of the next exchange, before limits and dithering */
  uint32_t srtt_us;        /* smoothed round-trip time */
  uint32_t rttvar_us;      /* its variation */
  uint32_t weak_srtt_us;   /* smoothed round-trip time of exchanges with retransmissions */
  uint32_t weak_rttvar_us; /* its variation */
  uint32_t carried_us;     /* backed-off wait kept for the next exchange */
} millpond_numbers;

/* What a server that follows millpond_calm_ knows of one peer. */
typedef struct {
  uint64_t w[4]; /* opaque */
} millpond_calm_peer;

/* What it knows of a path that peers share, such as those of one network. */
typedef struct {
  uint64_t w[9]; /* opaque */
} millpond_calm_path;

/* What millpond_calm_asked_again answers. Only the first one means silence. */
enum {
  MILLPOND_AGAIN_WITHHOLD = 0, /* stay silent: an answer is on its way */
  MILLPOND_AGAIN_UNKNOWN = 1,  /* answer: nothing is known of the path */
  MILLPOND_AGAIN_DUE = 2,      /* answer: the last answer is likely to be lost */
  MILLPOND_AGAIN_LOST = 3,     /* answer: a message that left after the last answer was rejected */
  MILLPOND_AGAIN_THIRD = 4     /* answer: every third copy of a request is */
};

/* What a call answers when it refuses. It has changed nothing then (but see millpond_peer_set). */
enum {
  MILLPOND_E_NULL = -1,            /* a pointer is null */
  MILLPOND_E_ALIGNMENT = -2,       /* a pointer is not aligned as its type must be */
  MILLPOND_E_HEADER = -3,          /* header and library do not belong together */
  MILLPOND_E_UNKNOWN_PRESET = -4,  /* no such preset, or its algorithm is not in the library */
  MILLPOND_E_UNKNOWN_SETTING = -5, /* the controller of this peer has no such setting */
  MILLPOND_E_OUT_OF_RANGE = -6,    /* the value lies outside the range of the setting */
  MILLPOND_E_CONFLICT = -7,        /* two settings of the peer contradict each other */
  MILLPOND_E_ARGUMENT = -8,        /* an argument is none of its constants */
  MILLPOND_E_BLANK = -9,           /* the peer was never initialised, the exchange never started */
  MILLPOND_E_FOREIGN = -10,        /* the record is of another kind, build or algorithm */
  MILLPOND_E_DAMAGED = -11,        /* the record was written to by something else */
  MILLPOND_E_ENDED = -12           /* the exchange has ended already */
};

/* What this header takes the sizes of its types to be. Hand it to millpond_peer_init as it stands:
 * a program that was compiled with another header is refused there. */
#define MILLPOND_SIZES \
  ((uint32_t)(sizeof(millpond_peer) / 8) << 24 | (uint32_t)(sizeof(millpond_exchange) / 8) << 18 | \
   (uint32_t)(sizeof(millpond_cx) / 4) << 14 | (uint32_t)(sizeof(millpond_wait) / 4) << 10 | \
   (uint32_t)(sizeof(millpond_sample) / 4) << 5 | (uint32_t)(sizeof(millpond_numbers) / 4))

/* The version of the library: MILLPOND_VERSION of the header that belongs to it. */
uint32_t millpond_version(void);

/* Makes the controller of a peer about which nothing is known. sizes is MILLPOND_SIZES, preset a
 * MILLPOND_PRESET_. */
int32_t millpond_peer_init(millpond_peer *peer, uint32_t sizes, uint16_t preset);

/* Sets a MILLPOND_SETTING_, meant for before the first use: what was learnt stays as it is.
 * value is in microseconds or thousandths, a number, or a constant of that setting. After
 * MILLPOND_E_CONFLICT the value is set, but until the settings go together the peer serves only
 * this call and those that look: where two depend on each other, set both. Every peer has
 * MILLPOND_SETTING_LEAST_WAIT: no wait is shorter. It is 200 ms under calm, and 0 under the
 * others. */
int32_t millpond_peer_set(millpond_peer *peer, uint16_t setting, uint32_t value);

/* May a message of this MILLPOND_CLASS_ and of len bytes leave now? Answers a MILLPOND_ADMIT_.
 * Your own limit on open exchanges (NSTART) is not asked about here. */
int32_t millpond_admit(const millpond_peer *peer, uint8_t message_class, uint16_t len,
                       const millpond_cx *cx, uint64_t *at_us);

/* The first copy of a confirmable message of len bytes leaves now. How long until the second? */
int32_t millpond_on_start(millpond_peer *peer, millpond_exchange *exchange, uint16_t len,
                          const millpond_cx *cx, millpond_wait *wait);

/* The wait ran out and a retransmission leaves now. How long this time? Ask for the last copy
 * too. */
int32_t millpond_on_timeout(millpond_peer *peer, millpond_exchange *exchange, const millpond_cx *cx,
                            millpond_wait *wait);

/* The exchange ended with an answer. */
int32_t millpond_on_reply(millpond_peer *peer, millpond_exchange *exchange,
                          const millpond_sample *sample, const millpond_cx *cx);

/* The exchange ended without an answer. why is a MILLPOND_END_. */
int32_t millpond_on_end(millpond_peer *peer, millpond_exchange *exchange, uint8_t why,
                        const millpond_cx *cx);

/* A message of len bytes that nobody will acknowledge left now. */
int32_t millpond_on_plain_send(millpond_peer *peer, uint16_t len, const millpond_cx *cx);

/* It became known what happened to a message that nobody acknowledges. Nothing depends on this
 * call: for many such messages it is never known. */
int32_t millpond_on_feedback(millpond_peer *peer, const millpond_feedback *feedback,
                             const millpond_cx *cx);

/* What the algorithm asks of your message layer: in the low byte a MILLPOND_NAMING_, in the next
 * one among how many non-confirmable messages one should be confirmable (0: no wish), and in the
 * 14 bits above how many exchanges may be open (NSTART; 0: as you are set). Bit 30 is set if the
 * algorithm governs plain requests by their answers, so that PROBING_RATE need not hold for
 * them; then do not ask it about other non-confirmable messages, nor tell it of them. */
int32_t millpond_wishes(const millpond_peer *peer);

/* How long, in microseconds, an answer to the last copy is awaited at least if nothing else is
 * to leave for this peer, drawn up to half as much again: only then is the request given up. 0:
 * the last wait is all. Of the presets calm wishes it. */
int32_t millpond_last_wait(const millpond_peer *peer, uint32_t *last_wait_us);

/* Numbers for traces and reports. */
int32_t millpond_view(const millpond_peer *peer, millpond_numbers *numbers);

/* For clients that keep what they learnt over a restart (docs/calm.md). */

/* Writes the base round trip of the path in microseconds: what it takes without a queue, as far
 * as this peer measured it itself. 0 if it measured none yet, or if its algorithm keeps none; of
 * the presets calm does. It is worth keeping over a restart, for a week at most, beside the
 * address that it belongs to. */
int32_t millpond_peer_base_rtt(const millpond_peer *peer, uint32_t *base_rtt_us);

/* Tells a new peer the base round trip, in microseconds, that millpond_peer_base_rtt gave in an
 * earlier life. It may be old or wrong: it is a bound that the first samples correct, and no
 * wait is shorter by it. Nothing changes, and the answer is 0 all the same, if it is 0 or longer
 * than the first certain sample, after that sample, and if the algorithm keeps none. */
int32_t millpond_peer_recall(millpond_peer *peer, uint32_t base_rtt_us);

/* For servers: which copies of a request are answered once more (docs/calm-server.md). */

/* Makes a path of which nothing is known: for the first peer on it, or in place of one that was
 * forgotten. sizes is MILLPOND_SIZES. */
int32_t millpond_calm_path_init(millpond_calm_path *path, uint32_t sizes);

/* Makes a peer that was never answered: for the first request of one, or in place of one that
 * was forgotten. */
int32_t millpond_calm_peer_init(millpond_calm_peer *peer);

/* A new confirmable request of a peer came. */
int32_t millpond_calm_asked(millpond_calm_peer *peer);

/* The answer to the newest request of a peer leaves for the first time. */
int32_t millpond_calm_answered(millpond_calm_peer *peer, uint64_t now_us);

/* A copy of the newest request of a peer came: is it answered once more? Answers a
 * MILLPOND_AGAIN_; unless that is MILLPOND_AGAIN_WITHHOLD, or if the call refuses, the answer
 * leaves now. Compare token and payload with those of the request before you ask: another
 * request under the same message ID is no copy. */
int32_t millpond_calm_asked_again(millpond_calm_path *path, millpond_calm_peer *peer,
                                  uint64_t now_us);

/* After each millpond_calm_asked and millpond_calm_asked_again: 1 if an empty confirmable
 * message is to leave for the peer now, before an answer does, under a message ID that nobody
 * guesses; else 0. */
int32_t millpond_calm_pings(millpond_calm_path *path, millpond_calm_peer *peer, uint64_t now_us);

/* The peer rejected the last of these messages, by its message ID. voter is a number of its own
 * from 1 to 65535, such as a hash of its address: each peer has as much to say about its path as
 * any other. */
int32_t millpond_calm_rejected(millpond_calm_path *path, millpond_calm_peer *peer, uint32_t voter,
                               uint64_t now_us);

/* A copy of an older request of a peer came, which was answered at first_us for the first time;
 * how many copies of it came, this one included, or 0 if you do not count them: then the third
 * is not answered for being the third. Answers as millpond_calm_asked_again does. */
int32_t millpond_calm_asked_late(millpond_calm_path *path, uint64_t first_us, uint32_t copies,
                                 uint64_t now_us);

/* For programs with a configuration file or a log; not in a library without the feature "names". */

/* The number of the preset with this name. */
int32_t millpond_preset_id(const char *name);

/* The number of the preset whose name is the nearest to this one, to be proposed where
 * millpond_preset_id knows none: at most a third of its letters differ. */
int32_t millpond_preset_nearest(const char *name);

/* The number of the setting with this name that this peer has. */
int32_t millpond_setting_id(const millpond_peer *peer, const char *name);

/* The value of a setting that takes words for this word. */
int32_t millpond_setting_word(uint16_t setting, const char *word);

/* Writes the name of a preset to text, cut to size bytes with the zero at its end. Answers its
 * whole length. */
int32_t millpond_preset_name(uint16_t preset, char *text, uint32_t size);

/* The same for the name of a setting. */
int32_t millpond_setting_name(uint16_t setting, char *text, uint32_t size);

/* The same for what a setting takes: a range with its unit, or words. */
int32_t millpond_setting_takes(uint16_t setting, char *text, uint32_t size);

/* The same for which settings of a peer contradict each other; an empty text if none do. */
int32_t millpond_peer_conflict(const millpond_peer *peer, char *text, uint32_t size);

/* What a negative answer means, in one line. */
const char *millpond_error_text(int32_t error);

#ifdef __cplusplus
}
#endif

#endif
