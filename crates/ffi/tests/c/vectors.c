/* Plays the call lists of the exact oracle (vectors/) through the C interface.
 *
 * The files are JSON in a fixed layout: one header of a case a line, one call a line, keys always in the same order. So
 * they are read line by line, and a value is found by its key.
 *
 * Where c/calm.c has the algorithm and the settings of a case, its calls are made there, too (beside.h). */
#include <stdlib.h>
#include <string.h>

#include "beside.h"

#define EXCHANGES 512

static const char *const kinds[] = {"empty-ack", "piggybacked", "separate"};
static const char *const ends[] = {"gave-up", "reset", "cancelled"};
static const char *const classes[] = {"confirmable", "plain"};
static const char *const messages[] = {"request", "further", "block"};
static const char *const fates[] = {"answered", "arrived", "lost"};
static const char *const admissions[] = {"now", "at", "when-one-ends"};
static const char *const reasons[] = {"initial", "backed-off", "slow", "carried", "blind"};
static const char *const numbers_by_bit[] = {"rto", "srtt", "rttvar", "weak_srtt", "weak_rttvar", "carried"};
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const char *file, *line;
static unsigned long line_number, calls, cases, cases_beside;
static int is_beside;

static void unreadable(const char *what) {
  printf("%s:%lu: %s: %.120s\n", file, line_number, what, line);
  exit(1);
}

/* What stands behind a key, or NULL. */
static const char *find(const char *text, const char *key) {
  char wanted[64];
  const char *place;
  snprintf(wanted, sizeof wanted, "\"%s\": ", key);
  place = strstr(text, wanted);
  return place ? place + strlen(wanted) : NULL;
}

static const char *value(const char *key) {
  const char *place = find(line, key);
  if (!place) unreadable(key);
  return place;
}

static uint64_t number_at(const char *place) {
  if (*place < '0' || *place > '9') unreadable("no whole number");
  return strtoull(place, NULL, 10);
}

static uint64_t number(const char *key) { return number_at(value(key)); }

/* Copies the string that begins at its quotation mark. */
static void copy_word(const char *place, char *word, size_t size) {
  const char *end;
  if (*place++ != '"' || !(end = strchr(place, '"')) || (size_t)(end - place) >= size) unreadable("no word");
  memcpy(word, place, (size_t)(end - place));
  word[end - place] = 0;
}

static uint8_t one_of(const char *key, const char *const *list, size_t count) {
  char word[32];
  size_t i;
  copy_word(value(key), word, sizeof word);
  for (i = 0; i < count; i++) {
    if (strcmp(word, list[i]) == 0) return (uint8_t)i;
  }
  unreadable(key);
  return 0;
}

/* Whole microseconds against the oracle's nanoseconds and its bound. */
static void near(const char *what, uint64_t us, uint64_t ns, uint64_t within_ns) {
  uint64_t ours = us * 1000, off = ours > ns ? ours - ns : ns - ours;
  EXPECT(off <= within_ns, "%s:%lu: %s is %llu us, not %llu ns", file, line_number, what, (unsigned long long)us,
         (unsigned long long)ns);
}

static void accepted(int32_t answer) {
  EXPECT(answer >= 0, "%s:%lu: %s", file, line_number, millpond_error_text(answer));
}

static void begin_case(millpond_peer *peer) {
  char word[64], name[64];
  int32_t preset, setting;
  const char *at = value("settings");
  copy_word(value("preset"), word, sizeof word);
  preset = millpond_preset_id(word);
  accepted(preset);
  accepted(millpond_peer_init(peer, MILLPOND_SIZES, (uint16_t)preset));
  is_beside = beside_begin((uint32_t)preset);
  if (*at++ != '{') unreadable("settings");
  while (*at == '"') {
    uint32_t to;
    copy_word(at, name, sizeof name);
    at += strlen(name) + 4;
    setting = millpond_setting_id(peer, name);
    accepted(setting);
    if (strncmp(at, "{\"word\": ", 9) == 0) {
      int32_t place;
      copy_word(at + 9, word, sizeof word);
      place = millpond_setting_word((uint16_t)setting, word);
      to = place < 0 && strcmp(word, "none") == 0 ? MILLPOND_UNLIMITED : (uint32_t)place;
    } else {
      const char *digits = strchr(at, ':');
      if (!digits) unreadable("settings");
      to = (uint32_t)number_at(digits + 2);
    }
    if (is_beside && !beside_set(name, to)) is_beside = 0;
    /* Until the last one is set they may contradict each other; then the first call says so. */
    setting = millpond_peer_set(peer, (uint16_t)setting, to);
    accepted(setting == MILLPOND_E_CONFLICT ? 0 : setting);
    at = strchr(at, '}');
    if (!at) unreadable("settings");
    at++;
    if (strncmp(at, ", ", 2) == 0) at += 2;
  }
  cases++;
  if (is_beside) {
    SAME(calm_init(&beside.peer, &beside.settings), 0);
    cases_beside++;
  }
}

static void check_wait(const millpond_wait *wait) {
  near("the wait", wait->span_us, number("wait_ns"), number("within_ns"));
  SAME(wait->reason, one_of("reason", reasons, COUNT(reasons)));
  /* Said only where it is to be abandoned. */
  SAME(wait->then, find(line, "then") ? MILLPOND_THEN_ABANDON : MILLPOND_THEN_RETRANSMIT);
}

static void check_view(const millpond_peer *peer) {
  millpond_numbers seen;
  const char *view = value("view");
  uint32_t kept[6];
  size_t i;
  accepted(millpond_view(peer, &seen));
  kept[0] = seen.rto_us;
  kept[1] = seen.srtt_us;
  kept[2] = seen.rttvar_us;
  kept[3] = seen.weak_srtt_us;
  kept[4] = seen.weak_rttvar_us;
  kept[5] = seen.carried_us;
  for (i = 0; i < COUNT(numbers_by_bit); i++) {
    const char *place = find(view, numbers_by_bit[i]), *bound;
    int is_kept = (int)(seen.kept >> i & 1);
    if (!place) unreadable(numbers_by_bit[i]);
    EXPECT(is_kept == (*place == '['), "%s:%lu: %s", file, line_number, numbers_by_bit[i]);
    if (*place != '[' || !is_kept) continue;
    bound = strstr(place, ", ");
    if (!bound) unreadable(numbers_by_bit[i]);
    near(numbers_by_bit[i], kept[i], number_at(place + 1), number_at(bound + 2));
  }
}

static void play_call(millpond_peer *peer, millpond_exchange *exchanges) {
  static calm_exchange exchanges_beside[EXCHANGES];
  millpond_cx cx;
  millpond_wait wait;
  millpond_exchange *exchange = exchanges;
  calm_exchange *same = exchanges_beside;
  char call[16];
  copy_word(value("call"), call, sizeof call);
  cx.now_us = number("now");
  cx.chance = (uint32_t)number("chance");
  cx.open = (uint16_t)number("open");
  cx.waiting = (uint16_t)number("waiting");
  if (find(line, "exchange")) {
    uint64_t place = number("exchange");
    if (place >= EXCHANGES) unreadable("too many exchanges");
    exchange = &exchanges[place];
    same = &exchanges_beside[place];
  }
  if (strcmp(call, "start") == 0) {
    accepted(millpond_on_start(peer, exchange, (uint16_t)number("len"), &cx, &wait));
    if (is_beside) beside_start(same, &cx, &wait);
    check_wait(&wait);
  } else if (strcmp(call, "timeout") == 0) {
    accepted(millpond_on_timeout(peer, exchange, &cx, &wait));
    if (is_beside) beside_timeout(same, &cx, &wait);
    check_wait(&wait);
  } else if (strcmp(call, "reply") == 0) {
    millpond_sample sample;
    const char *named = value("named");
    memset(&sample, 0, sizeof sample);
    sample.kind = one_of("kind", kinds, COUNT(kinds));
    sample.since_first_us = (uint32_t)number("since_first");
    sample.since_last_us = (uint32_t)number("since_last");
    sample.retransmissions = (uint8_t)number("retransmissions");
    if (*named == '"') {
      sample.names = MILLPOND_NAMES_FURTHER;
    } else if (*named != 'n') {
      sample.names = MILLPOND_NAMES_COPY;
      sample.named = (uint8_t)number_at(named);
      sample.since_named_us = (uint32_t)number("since_named");
    }
    accepted(millpond_on_reply(peer, exchange, &sample, &cx));
    if (is_beside) beside_reply(same, &sample, &cx);
    check_view(peer);
  } else if (strcmp(call, "end") == 0) {
    uint8_t why = one_of("why", ends, COUNT(ends));
    accepted(millpond_on_end(peer, exchange, why, &cx));
    if (is_beside) beside_end(same, why, &cx);
    check_view(peer);
  } else if (strcmp(call, "plain") == 0) {
    accepted(millpond_on_plain_send(peer, (uint16_t)number("len"), &cx));
    if (is_beside) beside_plain(&cx);
  } else if (strcmp(call, "feedback") == 0) {
    millpond_feedback known;
    memset(&known, 0, sizeof known);
    known.message = one_of("message", messages, COUNT(messages));
    known.fate = one_of("fate", fates, COUNT(fates));
    known.since_us = (uint32_t)number("since");
    known.len = (uint16_t)number("len");
    known.reply_len = (uint16_t)number("reply_len");
    known.number = (uint32_t)number("number");
    accepted(millpond_on_feedback(peer, &known, &cx));
    check_view(peer);
  } else if (strcmp(call, "admit") == 0) {
    uint64_t at_us = 0;
    uint8_t message_class = one_of("class", classes, COUNT(classes));
    int32_t admission = millpond_admit(peer, message_class, (uint16_t)number("len"), &cx, &at_us);
    if (is_beside) beside_admit(message_class, &cx, admission, at_us);
    SAME(admission, one_of("admit", admissions, COUNT(admissions)));
    if (admission == MILLPOND_ADMIT_AT) near("the instant", at_us, number("at") * 1000, number("within_ns"));
  } else {
    unreadable("no such call");
  }
  if (is_beside) beside_view(peer);
  calls++;
}

static void play(void) {
  static char text[1 << 16];
  millpond_exchange exchanges[EXCHANGES];
  millpond_peer peer;
  FILE *vectors = fopen(file, "r");
  unsigned long before = calls;
  line = text;
  line_number = 0;
  if (!vectors) {
    perror(file);
    exit(1);
  }
  while (fgets(text, sizeof text, vectors)) {
    line_number++;
    if (line_number == 1) {
      if (number("format") != 1) unreadable("another format");
    } else if (strncmp(text, "{\"name\": ", 9) == 0) {
      begin_case(&peer);
    } else if (strncmp(text, "{\"call\": ", 9) == 0) {
      play_call(&peer, exchanges);
    } else if (strncmp(text, "]", 1) != 0) {
      unreadable("not a case and not a call");
    }
  }
  fclose(vectors);
  EXPECT(calls > before, "%s holds no calls", file);
}

int main(int count, char **files) {
  int i;
  for (i = 1; i < count; i++) {
    file = files[i];
    play();
  }
  printf("vectors: %d files, %lu cases, %lu calls; %lu cases in calm.c, too\n", count - 1, cases, calls, cases_beside);
  return verdict("vectors");
}
