/* calm.h - retransmission timers for a CoAP client: calm, and beside it the timer of RFC 7252
 *
 * Copy calm.h and calm.c into your firmware. A calm_peer stands beside each server's address, a
 * calm_exchange beside each confirmable message. Your message layer calls
 *
 *   before a message leaves for the first time          calm_admit         may it leave now?
 *   a confirmable message leaves for the first time     calm_start         arm your timer
 *   its timer expires and a retransmission leaves       calm_timeout       arm it again
 *   its answer comes                                    calm_reply
 *   it ends without one                                 calm_end
 *
 * There is no heap, static variable, clock, random source or callback: time and random words are
 * arguments. Different peers may be used at once, by interrupts too; one peer may not.
 *
 * A call that refuses answers a CALM_E_, which is negative, and changes nothing. Firmware that does
 * not look is served all the same: a wait is always written, and a message always admitted or not.
 *
 * docs/c-library.md says how to adopt it, docs/calm.md why it does what it does.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef CALM_H
#define CALM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Times are in microseconds, each at most 600 s; CALM_UNLIMITED stands for no bound. */
typedef struct {
  uint32_t ack_timeout_us; /* the first wait to a peer that was never measured, up to 1.5 times as long; at least 1 ms */
  uint32_t max_wait_us;    /* where waits stop growing; not below ack_timeout_us */
  uint32_t patience_us;    /* from this wait on waits at most double */
  uint32_t least_wait_us;  /* no wait is shorter */
  uint8_t adapts;          /* 1: calm; 0: the timer of RFC 7252 */
} calm_settings;

#define CALM_UNLIMITED UINT32_MAX

/* Calm: 2 s, 120 s, 4 s, 200 ms. */
extern const calm_settings calm_default;
/* RFC 7252 sections 4.2 and 4.8: 2 to 3 s, doubled by each copy. */
extern const calm_settings calm_rfc7252;

/* What is known of one peer. calm_init writes it; look with calm_view. It may be copied, and points
 * to nothing but its settings. */
typedef struct {
  uint64_t ended_us; /* when an exchange ended last; UINT64_MAX before the first */
  uint64_t plain_us; /* no non-confirmable message leaves before */
  const calm_settings *settings;
  uint32_t hold_us;  /* nothing leaves for the first time for so long after ended_us */
  uint32_t srtt_us, rttvar_us;
  uint32_t least_us;     /* the shortest certain round trip; CALM_UNLIMITED before the first */
  uint32_t recent_us[4]; /* the last round trips, the latest first; CALM_UNLIMITED where there is none */
  uint32_t falls_us;     /* how far round trips fall below the one before, on average */
  uint32_t kept_us;      /* a backed-off wait that the next exchange begins with; 0 for none */
  uint16_t lost;         /* the share of lost copies, in thousandths */
  uint8_t seen;          /* copies whose fate is known, up to a limit; 0 if calm_init was not called */
  uint8_t samples;       /* round trips that were measured, up to a limit */
} calm_peer;

/* What goes with one confirmable message. calm_start writes it. */
typedef struct {
  uint32_t wait_us; /* the wait in force */
  uint16_t state;   /* open, ended, or anything else if calm_start was not called */
  uint8_t retransmissions;
} calm_exchange;

/* What a call may know. */
typedef struct {
  uint64_t now_us; /* microseconds since an origin of yours, never going back; see calm_clock */
  uint32_t chance; /* 32 random bits, fresh for each call, different between devices; they need not be secret */
  uint16_t open;   /* exchanges open with this peer, the one that the call is about included */
} calm_cx;

typedef struct {
  uint32_t span_us; /* how long to wait for an answer before the next copy, or before giving up */
  uint8_t reason;   /* a CALM_REASON_, for traces */
} calm_wait;

enum {
  CALM_REASON_INITIAL = 0,    /* first copy, timed by what was measured or by RFC 7252 */
  CALM_REASON_BACKED_OFF = 1, /* a later copy */
  CALM_REASON_CARRIED = 3,    /* first copy, timed by a wait kept from an earlier exchange */
  CALM_REASON_BLIND = 4       /* first copy to a peer that was never measured */
};

/* What an answer says of the path. Set all of it to zero, then what you know. */
typedef struct {
  uint32_t since_first_us; /* since the first copy left */
  uint32_t since_last_us;  /* since the last copy left */
  uint32_t since_named_us; /* since the copy left that the answer names */
  uint8_t kind;            /* a CALM_KIND_ */
  uint8_t names;           /* 1 if the token of the answer names a copy */
  uint8_t named;           /* which; 0 is the first */
} calm_sample;

enum {
  CALM_KIND_EMPTY_ACK = 0,   /* an empty acknowledgement */
  CALM_KIND_PIGGYBACKED = 1, /* a response in the acknowledgement */
  CALM_KIND_SEPARATE = 2     /* a separate response before the acknowledgement: says nothing of the path */
};

/* Why an exchange ended without an answer. */
enum {
  CALM_END_GAVE_UP = 0,  /* the wait after the last copy ran out */
  CALM_END_RESET = 1,    /* the peer sent a Reset */
  CALM_END_CANCELLED = 2 /* nobody wants the answer any more */
};

enum {
  CALM_CLASS_CONFIRMABLE = 0,
  CALM_CLASS_PLAIN = 1 /* non-confirmable */
};

/* What calm_admit answers. */
enum {
  CALM_ADMIT_NOW = 0,          /* it may leave */
  CALM_ADMIT_AT = 1,           /* ask again at *at_us */
  CALM_ADMIT_WHEN_ONE_ENDS = 2 /* ask again when an exchange with this peer ends */
};

/* Numbers for traces, never for decisions. */
typedef struct {
  uint32_t rto_us;             /* the wait that the next exchange is drawn from, unless one is carried */
  uint32_t srtt_us, rttvar_us; /* smoothed round trip and its variation; nothing while samples is 0 */
  uint32_t carried_us;         /* a backed-off wait kept for the next exchange; 0 for none */
  uint16_t lost;               /* the share of lost copies, in thousandths */
  uint8_t samples;             /* round trips that were measured; 4 stands for more, too */
} calm_numbers;

/* Why a call refuses. */
enum {
  CALM_E_NULL = -1,     /* a pointer is null */
  CALM_E_SETTINGS = -2, /* a setting is out of range, or ack_timeout_us above max_wait_us */
  CALM_E_ARGUMENT = -3, /* an argument is none of its constants */
  CALM_E_BLANK = -4,    /* calm_init or calm_start was not called, or something else wrote there */
  CALM_E_ENDED = -5,    /* the exchange has ended already */
  CALM_E_CLOCK = -6     /* the clock has no ticks, or (told to CALM_MISUSE only) it went back */
};

/* A peer of which nothing is known. The settings must outlive it; NULL stands for calm_default. */
int32_t calm_init(calm_peer *peer, const calm_settings *settings);

/* May a message of this CALM_CLASS_ leave now for the first time? Answers a CALM_ADMIT_; *at_us is when
 * to ask again. Your NSTART is not asked about here, and retransmissions never ask. */
int32_t calm_admit(const calm_peer *peer, uint8_t message_class, const calm_cx *cx, uint64_t *at_us);

/* The first copy of a confirmable message leaves now: how long until the second? */
int32_t calm_start(calm_peer *peer, calm_exchange *exchange, const calm_cx *cx, calm_wait *wait);

/* The timer expired and a retransmission leaves now: how long is the next wait? Ask for the last one too. */
int32_t calm_timeout(const calm_peer *peer, calm_exchange *exchange, const calm_cx *cx, calm_wait *wait);

/* The exchange ended with an answer. */
int32_t calm_reply(calm_peer *peer, calm_exchange *exchange, const calm_sample *sample, const calm_cx *cx);

/* The exchange ended without one. why is a CALM_END_. */
int32_t calm_end(calm_peer *peer, calm_exchange *exchange, uint8_t why, const calm_cx *cx);

/* A non-confirmable message left now. Make at least every eighth confirmable. */
int32_t calm_plain_send(calm_peer *peer, const calm_cx *cx);

int32_t calm_view(const calm_peer *peer, calm_numbers *numbers);

/* After the last copy an answer may still come when the wait is over. If nothing else is to leave for this
 * peer, listen for so long in all, drawn up to half as much again; 0 means the wait alone. */
uint32_t calm_last_wait(const calm_peer *peer);

/* What is worth keeping over a restart, for a week at most: the shortest round trip in microseconds; 0 if
 * none is known. calm_recall hands it to a new peer, as a bound that its own samples correct. */
uint32_t calm_base_rtt(const calm_peer *peer);
int32_t calm_recall(calm_peer *peer, uint32_t base_rtt_us);

/* A counter of 32 bits that wraps, as microseconds in 64 that do not. Read it at least once in half of its
 * period: milliseconds wrap after 49 days. A step back counts as no time at all. */
typedef struct {
  uint64_t now_us;
  uint32_t ticks, per_second, rest;
} calm_clock;

int32_t calm_clock_init(calm_clock *clock, uint32_t ticks_per_second, uint32_t ticks);
uint64_t calm_clock_now(calm_clock *clock, uint32_t ticks);

#ifdef __cplusplus
}
#endif

#endif
