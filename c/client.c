/* A CoAP client on calm.c: a message layer to copy, over a UDP socket. One confirmable message at a time (NSTART, RFC
 * 7252 section 4.7), retransmissions, copies named in their tokens, separate responses, notifications (RFC 7641).
 *     cc -o client client.c calm.c && ./client -n 20 127.0.0.1 5683 hello
 * -r: the timer of RFC 7252 in place of calm; -t: ACK_TIMEOUT in milliseconds; -n: so many requests; -p: so many
 * milliseconds from one to the next at least; -o: observe, for so many notifications; -q: only the last line. */
#define _POSIX_C_SOURCE 200809L
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "calm.h"

enum { CON, NON, ACK, RST };
enum { GET = 1, MAX_RETRANSMIT = 4, COPIES = MAX_RETRANSMIT + 1, TOKEN = 4, LONGEST = 1152, OBSERVE = 6 };
static const uint64_t PATIENCE_US = 60000000; /* for a separate response, which no RFC bounds */

/* A message that came. */
typedef struct {
  uint8_t type, code, token[8];
  uint16_t mid;
  size_t token_len, payload_len;
  int32_t observe; /* the number of a notification; -1 if it is none */
  const uint8_t *payload;
} message;

/* The request under way. Its copies share the message ID, and the token but for its last byte: their number. */
typedef struct {
  calm_exchange exchange;
  uint64_t sent_us[COPIES]; /* when each copy left */
  uint16_t mid;
  uint8_t token[TOKEN];
  uint8_t copies; /* that have left */
} request;

typedef enum { WAITS, ACKNOWLEDGED, DONE, REJECTED, GAVE_UP } outcome;
typedef struct {
  FILE *random;
  uint16_t next_mid;
  calm_peer peer;
  const char *path;
  request now;
  int socket, quiet, wanted, notifications; /* wanted is 0 unless it observes */
  int32_t newest; /* the number of the newest notification */
  unsigned long answered, failed, copies, again;
} client;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t now_us(void) {
  struct timespec t;
  if (clock_gettime(CLOCK_MONOTONIC, &t) != 0) fail("clock");
  return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static uint32_t random_word(client *c) { /* nobody may guess tokens (RFC 7252 section 11.4) */
  uint32_t word;
  if (fread(&word, sizeof word, 1, c->random) != 1) fail("random words");
  return word;
}

static calm_cx context(client *c) {
  calm_cx cx = {now_us(), random_word(c), 1};
  return cx;
}

/* One field of an option header with its extension (RFC 7252 section 3.1); -1 if it is none. */
static int32_t extended(uint8_t nibble, const uint8_t **at, const uint8_t *end) {
  if (nibble == 13 && end - *at >= 1) return 13 + *(*at)++;
  if (nibble == 14 && end - *at >= 2) {
    *at += 2;
    return 269 + ((*at)[-2] << 8 | (*at)[-1]);
  }
  return nibble < 13 ? nibble : -1;
}

/* Reads what came. Answers 0 if it is no message: then it is ignored. */
static int parse(const uint8_t *bytes, size_t len, message *m) {
  const uint8_t *at = bytes + 4, *end = bytes + len;
  int32_t number = 0;
  memset(m, 0, sizeof *m);
  m->observe = -1;
  if (len < 4 || bytes[0] >> 6 != 1 || (bytes[0] & 15) > 8 || len < 4u + (bytes[0] & 15u)) return 0;
  m->type = bytes[0] >> 4 & 3;
  m->code = bytes[1];
  m->mid = (uint16_t)(bytes[2] << 8 | bytes[3]);
  m->token_len = bytes[0] & 15u;
  memcpy(m->token, at, m->token_len);
  at += m->token_len;
  while (at < end && *at != 0xff) {
    uint8_t head = *at++;
    int32_t delta = extended(head >> 4, &at, end), size = extended(head & 15, &at, end), i;
    if (delta < 0 || size < 0 || end - at < size) return 0;
    number += delta;
    if (number == OBSERVE && size <= 3)
      for (m->observe = 0, i = 0; i < size; i++) m->observe = m->observe << 8 | at[i];
    at += size;
  }
  m->payload = at < end ? at + 1 : end;
  m->payload_len = (size_t)(end - m->payload);
  return 1;
}

/* What the system does not take now is as good as lost: the timer sends it again. */
static void transmit(client *c, const uint8_t *bytes, size_t len) {
  if (send(c->socket, bytes, len, 0) < 0 && !c->quiet) perror("send");
}

/* An empty acknowledgement or a Reset. */
static void reply_empty(client *c, uint8_t type, uint16_t mid) {
  uint8_t bytes[4] = {(uint8_t)(0x40 | type << 4), 0, (uint8_t)(mid >> 8), (uint8_t)mid};
  transmit(c, bytes, sizeof bytes);
}

/* A GET, named by the number of this copy. */
static void send_copy(client *c) {
  request *r = &c->now;
  uint8_t bytes[LONGEST] = {0x40 | CON << 4 | TOKEN, GET, (uint8_t)(r->mid >> 8), (uint8_t)r->mid};
  uint8_t previous = 0, *at = bytes + 4;
  r->token[TOKEN - 1] = r->copies;
  memcpy(at, r->token, TOKEN);
  at += TOKEN;
  if (c->wanted > 0) *at++ = (uint8_t)((previous = OBSERVE) << 4); /* Observe: 0 */
  *at++ = (uint8_t)((11 - previous) << 4 | (int)strlen(c->path)); /* Uri-Path */
  memcpy(at, c->path, strlen(c->path));
  at += strlen(c->path);
  r->sent_us[r->copies++] = now_us();
  c->copies++;
  transmit(c, bytes, (size_t)(at - bytes));
}

static long ms(uint64_t us) { return (long)(us / 1000u); }

/* Arms the timer after a copy has left: when it runs out. */
static uint64_t arm(client *c) {
  request *r = &c->now;
  calm_cx cx = context(c);
  calm_wait wait;
  if (r->copies == 1) (void)calm_start(&c->peer, &r->exchange, &cx, &wait);
  else (void)calm_timeout(&c->peer, &r->exchange, &cx, &wait);
  if (!c->quiet) printf("copy %d leaves, waits %ld ms\n", r->copies, ms(wait.span_us));
  return cx.now_us + wait.span_us;
}

/* An acknowledgement or a response came: the exchange is over, and calm learns of the path. */
static void learn(client *c, const message *m, uint8_t kind) {
  request *r = &c->now;
  calm_cx cx = context(c);
  uint32_t since_first_us = (uint32_t)(cx.now_us - r->sent_us[0]);
  calm_sample sample = {since_first_us, (uint32_t)(cx.now_us - r->sent_us[r->copies - 1]), 0, kind, 0, 0};
  calm_numbers numbers;
  if (m->token_len == TOKEN && m->token[TOKEN - 1] < r->copies) { /* an empty acknowledgement names nothing */
    sample.names = 1;
    sample.named = m->token[TOKEN - 1];
    sample.since_named_us = (uint32_t)(cx.now_us - r->sent_us[sample.named]);
  }
  (void)calm_reply(&c->peer, &r->exchange, &sample, &cx);
  (void)calm_view(&c->peer, &numbers);
  if (!c->quiet)
    printf("answer after %ld ms; next wait from %ld ms, %u.%u %% lost\n", ms(since_first_us),
           ms(numbers.rto_us), numbers.lost / 10u, numbers.lost % 10u);
}

static outcome end(client *c, uint8_t why, outcome state) {
  calm_cx cx = context(c);
  (void)calm_end(&c->peer, &c->now.exchange, why, &cx);
  return state;
}

/* A response to what was asked last, or a notification: RFC 7641 section 3.4 says which are old. */
static void take(client *c, const message *m) {
  int32_t ahead = (m->observe - c->newest) & 0xffffff;
  if (c->notifications > 0 && (m->observe < 0 || ahead == 0 || ahead >= 1 << 23)) return;
  c->notifications += m->observe >= 0;
  if (m->observe >= 0) c->newest = m->observe;
  if (!c->quiet) printf("%d.%02d %.*s\n", m->code >> 5, m->code & 31, (int)m->payload_len, (const char *)m->payload);
}

/* Takes one message, and answers what has become of the request. */
static outcome handle(client *c, const message *m, outcome state) {
  int is_named = m->token_len == TOKEN && m->token[TOKEN - 1] < c->now.copies;
  int is_response = m->code >> 5 >= 2 && is_named && memcmp(m->token, c->now.token, TOKEN - 1) == 0;
  if (m->type == ACK || m->type == RST) {
    if (m->mid != c->now.mid || (m->code != 0 && !is_response)) return state; /* of an earlier message, or forged */
    if (state != WAITS) c->again++; /* an answer to a copy that need not have been sent */
    if (state != WAITS) return state;
    if (m->type == RST) return end(c, CALM_END_RESET, REJECTED);
    learn(c, m, is_response ? CALM_KIND_PIGGYBACKED : CALM_KIND_EMPTY_ACK);
    if (is_response) take(c, m);
    return is_response ? DONE : ACKNOWLEDGED;
  }
  /* A separate response or a notification. What is none of ours is rejected, which ends an observation, too. */
  if (m->type == CON) reply_empty(c, is_response ? ACK : RST, m->mid); /* each copy: the last may be lost */
  if (!is_response) return state;
  if (state == WAITS) learn(c, m, CALM_KIND_SEPARATE);
  if (state == WAITS || state == ACKNOWLEDGED || c->wanted > 0) take(c, m);
  return state == REJECTED || state == GAVE_UP ? state : DONE;
}

/* Handles what comes until then, or until the state is another one. */
static outcome listen_until(client *c, uint64_t until_us, outcome state) {
  outcome before = state;
  int notified = c->notifications;
  while (state == before && (state != DONE || c->notifications == notified)) {
    uint8_t bytes[LONGEST];
    uint64_t now = now_us();
    struct pollfd ready = {c->socket, POLLIN, 0};
    message m;
    ssize_t len;
    if (now >= until_us) break;
    if (poll(&ready, 1, (int)(ms(until_us - now) + 1)) <= 0) continue;
    len = recv(c->socket, bytes, sizeof bytes, 0); /* longer ones are cut, and shown so */
    if (len > 0 && parse(bytes, (size_t)len, &m)) state = handle(c, &m, state);
  }
  return state;
}

/* One request, from when it may leave to its end. */
static outcome ask(client *c, uint64_t next_us) {
  request *r = &c->now;
  outcome state = WAITS;
  calm_cx cx = context(c);
  uint64_t at_us, deadline_us;
  uint32_t word = random_word(c);
  while (calm_admit(&c->peer, CALM_CLASS_CONFIRMABLE, &cx, &at_us) == CALM_ADMIT_AT) {
    (void)listen_until(c, at_us, DONE);
    cx = context(c);
  }
  memset(r, 0, sizeof *r);
  r->mid = c->next_mid++; /* none comes again within EXCHANGE_LIFETIME (RFC 7252 section 4.4) */
  memcpy(r->token, &word, TOKEN - 1);
  do {
    send_copy(c);
    deadline_us = arm(c);
    state = listen_until(c, deadline_us, WAITS);
  } while (state == WAITS && r->copies < COPIES);
  /* An answer may come after the last wait, too: it listens on while nothing else is due. */
  deadline_us = r->sent_us[r->copies - 1] + calm_last_wait(&c->peer);
  if (state == WAITS) state = listen_until(c, deadline_us < next_us ? deadline_us : next_us, WAITS);
  if (state == WAITS) return end(c, CALM_END_GAVE_UP, GAVE_UP);
  return state == ACKNOWLEDGED ? listen_until(c, now_us() + PATIENCE_US, ACKNOWLEDGED) : state;
}

static void usage(void) {
  fputs("usage: client [-r] [-t ms] [-n requests] [-p ms] [-o notifications] [-q] host port path\n", stderr);
  exit(2);
}

/* A socket for this peer alone: datagrams of other senders do not come in. */
static int connected(const char *host, const char *port) {
  struct addrinfo hints, *found;
  int made;
  memset(&hints, 0, sizeof hints);
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(host, port, &hints, &found) != 0) usage();
  made = socket(found->ai_family, SOCK_DGRAM, 0);
  if (made < 0 || connect(made, found->ai_addr, found->ai_addrlen) != 0) fail("socket");
  freeaddrinfo(found);
  return made;
}

int main(int count, char **arguments) {
  static client c;
  int option;
  unsigned long requests = 1, i;
  uint64_t period_us = 0, first_us, next_us;
  calm_settings settings = calm_default;
  while ((option = getopt(count, arguments, "rt:n:p:o:q")) != -1) {
    if (option == 'r') settings = calm_rfc7252;
    else if (option == 't') settings.ack_timeout_us = (uint32_t)strtoul(optarg, NULL, 10) * 1000u;
    else if (option == 'n') requests = strtoul(optarg, NULL, 10);
    else if (option == 'p') period_us = strtoull(optarg, NULL, 10) * 1000u;
    else if (option == 'o') c.wanted = atoi(optarg);
    else if (option == 'q') c.quiet = 1;
    else usage();
  }
  if (count - optind != 3 || strlen(arguments[optind + 2]) > 12) usage();
  c.socket = connected(arguments[optind], arguments[optind + 1]);
  c.path = arguments[optind + 2];
  if ((c.random = fopen("/dev/urandom", "rb")) == NULL) fail("/dev/urandom");
  c.next_mid = (uint16_t)random_word(&c);
  if (calm_init(&c.peer, &settings) < 0) usage();
  first_us = now_us();
  for (i = 0; i < requests; i++) {
    outcome state = ask(&c, next_us = first_us + (i + 1) * period_us);
    *(state == DONE ? &c.answered : &c.failed) += 1;
    if (!c.quiet && state != DONE) puts(state == REJECTED ? "rejected" : "gave up");
    while (state == DONE && c.notifications < c.wanted) (void)listen_until(&c, now_us() + PATIENCE_US, DONE);
    while (now_us() < next_us) (void)listen_until(&c, next_us, DONE); /* it acknowledges and counts between requests */
  }
  printf("%lu answered, %lu failed; copies: %lu, spurious: %lu; notifications: %d; %ld ms\n", c.answered, c.failed,
         c.copies, c.again, c.notifications, ms(now_us() - first_us));
  return c.failed > 0;
}
