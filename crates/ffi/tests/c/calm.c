/* A calm server: which copies it answers, and what it refuses. */
#include <string.h>

#include "expect.h"
#include "millpond.h"

#define SECOND 1000000u
#define VOTER 7u

typedef struct {
  millpond_calm_path path;
  millpond_calm_peer peer;
  uint64_t now_us;
} cell;

static void init(cell *of) {
  memset(of, 0xA5, sizeof *of);
  of->now_us = 0;
  SAME(millpond_calm_path_init(&of->path, MILLPOND_SIZES), 0);
  SAME(millpond_calm_peer_init(&of->peer), 0);
}

/* A new request, answered at once; whether a ping leaves. */
static int32_t asks(cell *of) {
  int32_t pings;
  SAME(millpond_calm_asked(&of->peer), 0);
  pings = millpond_calm_pings(&of->path, &of->peer, of->now_us);
  SAME(millpond_calm_answered(&of->peer, of->now_us), 0);
  return pings;
}

static int32_t copy(cell *of, uint64_t after_us) {
  return millpond_calm_asked_again(&of->path, &of->peer, of->now_us + after_us);
}

static void sizes_are_those_of_the_header(void) {
  SAME(sizeof(millpond_calm_peer), 32);
  SAME(sizeof(millpond_calm_path), 72);
}

static void while_nothing_is_known_every_copy_is_answered(void) {
  cell of;
  init(&of);
  SAME(asks(&of), 1);
  SAME(copy(&of, 1), MILLPOND_AGAIN_UNKNOWN);
  SAME(copy(&of, 2), MILLPOND_AGAIN_UNKNOWN);
}

/* The ping took 10 s: a copy is due after 1.1 of it and 20 ms more. */
static void in_a_queue_copies_wait_until_they_are_due(void) {
  cell of;
  init(&of);
  SAME(asks(&of), 1);
  of.now_us += 10 * SECOND;
  SAME(millpond_calm_rejected(&of.path, &of.peer, VOTER, of.now_us), 0);
  SAME(asks(&of), 0);
  SAME(copy(&of, 1), MILLPOND_AGAIN_WITHHOLD);
  SAME(millpond_calm_asked_late(&of.path, 0, 1, 12 * SECOND), MILLPOND_AGAIN_DUE);
  SAME(copy(&of, 11020000u + 1u), MILLPOND_AGAIN_DUE);
}

static void what_is_asked_for_after_a_later_ping_came_back_is_lost(void) {
  cell of;
  uint32_t number;
  init(&of);
  for (number = 0; number < 3; number++) {
    SAME(millpond_calm_peer_init(&of.peer), 0);
    of.now_us = 0;
    SAME(asks(&of), 1);
    of.now_us = 10 * SECOND;
    SAME(millpond_calm_rejected(&of.path, &of.peer, VOTER + number, of.now_us), 0);
  }
  asks(&of);
  SAME(copy(&of, SECOND), MILLPOND_AGAIN_WITHHOLD);
  SAME(millpond_calm_pings(&of.path, &of.peer, of.now_us + SECOND), 1);
  SAME(millpond_calm_rejected(&of.path, &of.peer, VOTER, of.now_us + 2 * SECOND), 0);
  SAME(copy(&of, 3 * SECOND), MILLPOND_AGAIN_LOST);
}

static void mistakes_are_refused(void) {
  cell of;
  millpond_calm_peer blank;
  init(&of);
  memset(&blank, 0, sizeof blank);
  SAME(millpond_calm_path_init(NULL, MILLPOND_SIZES), MILLPOND_E_NULL);
  SAME(millpond_calm_path_init(&of.path, MILLPOND_SIZES + 1), MILLPOND_E_HEADER);
  SAME(millpond_calm_asked(&blank), MILLPOND_E_BLANK);
  SAME(millpond_calm_asked(NULL), MILLPOND_E_NULL);
  SAME(millpond_calm_pings((millpond_calm_path *)(void *)&of.peer, &of.peer, 1), MILLPOND_E_FOREIGN);
  SAME(millpond_calm_asked_again(&of.path, (millpond_calm_peer *)(void *)&of.path, 1), MILLPOND_E_FOREIGN);
  SAME(millpond_view((millpond_peer *)(void *)&of, NULL), MILLPOND_E_NULL);
  ((unsigned char *)&of.peer)[9] ^= 1;
  SAME(millpond_calm_answered(&of.peer, 1), MILLPOND_E_DAMAGED);
}

int main(void) {
  sizes_are_those_of_the_header();
  while_nothing_is_known_every_copy_is_answered();
  in_a_queue_copies_wait_until_they_are_due();
  what_is_asked_for_after_a_later_ping_came_back_is_lost();
  mistakes_are_refused();
  return verdict("calm");
}
