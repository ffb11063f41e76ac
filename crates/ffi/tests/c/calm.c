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

/* A new request, so long after the answer to the one before, answered at once. */
static void asks(cell *of, uint64_t after_us) {
  of->now_us += after_us;
  SAME(millpond_calm_asked(&of->path, &of->peer, VOTER, of->now_us), 0);
  SAME(millpond_calm_answered(&of->peer, of->now_us), 0);
}

static int32_t copy(cell *of, uint64_t after_us) {
  return millpond_calm_asked_again(&of->path, &of->peer, VOTER, of->now_us + after_us);
}

static void sizes_are_those_of_the_header(void) {
  SAME(sizeof(millpond_calm_peer), 32);
  SAME(sizeof(millpond_calm_path), 80);
}

static void without_a_sign_of_a_queue_every_copy_is_answered(void) {
  cell of;
  init(&of);
  asks(&of, 0);
  SAME(copy(&of, 1), MILLPOND_AGAIN_CALM);
  asks(&of, SECOND);
  asks(&of, SECOND);
  SAME(copy(&of, 1), MILLPOND_AGAIN_CALM);
}

/* The median is 10 s: a copy is due after 1.1 of it and 20 ms more. One in four exchanges is answered for nothing, and every
 * third copy. Without copies these times are pauses. */
static void in_a_queue_copies_wait_until_they_are_due(void) {
  cell of;
  int number;
  init(&of);
  asks(&of, 0);
  for (number = 0; number < 8; number++) {
    asks(&of, (number ? 10 : 1) * SECOND);
  }
  for (number = 0; number < 2; number++) {
    SAME(copy(&of, 1), MILLPOND_AGAIN_CALM);
    asks(&of, 10 * SECOND);
  }
  for (number = 0; number < 6 && copy(&of, (uint64_t)number) != MILLPOND_AGAIN_WITHHOLD; number++) {
  }
  asks(&of, 10 * SECOND);
  SAME(copy(&of, 1), MILLPOND_AGAIN_WITHHOLD);
  SAME(copy(&of, 2), MILLPOND_AGAIN_WITHHOLD);
  SAME(copy(&of, 3), MILLPOND_AGAIN_THIRD);
  SAME(copy(&of, 4), MILLPOND_AGAIN_WITHHOLD);
  SAME(millpond_calm_asked_late(&of.path, of.now_us - 12 * SECOND, 1, of.now_us + 6), MILLPOND_AGAIN_DUE);
  SAME(copy(&of, 3 + 11020000u + 1u), MILLPOND_AGAIN_DUE);
}

/* Whoever may have forged its address tells nothing about a path. */
static void who_is_not_validated_has_no_voice(void) {
  cell of;
  int number;
  init(&of);
  for (number = 0; number < 50; number++) {
    of.now_us += 10 * SECOND;
    SAME(millpond_calm_asked(&of.path, &of.peer, 0, of.now_us), 0);
    SAME(millpond_calm_answered(&of.peer, of.now_us), 0);
    SAME(millpond_calm_asked_again(&of.path, &of.peer, 0, of.now_us + 1), MILLPOND_AGAIN_CALM);
  }
}

static void mistakes_are_refused(void) {
  cell of;
  millpond_calm_peer blank;
  init(&of);
  memset(&blank, 0, sizeof blank);
  SAME(millpond_calm_path_init(NULL, MILLPOND_SIZES), MILLPOND_E_NULL);
  SAME(millpond_calm_path_init(&of.path, MILLPOND_SIZES + 1), MILLPOND_E_HEADER);
  SAME(millpond_calm_asked(&of.path, &blank, VOTER, 1), MILLPOND_E_BLANK);
  SAME(millpond_calm_asked(&of.path, NULL, VOTER, 1), MILLPOND_E_NULL);
  SAME(millpond_calm_asked((millpond_calm_path *)(void *)&of.peer, &of.peer, VOTER, 1), MILLPOND_E_FOREIGN);
  SAME(millpond_calm_asked_again(&of.path, (millpond_calm_peer *)(void *)&of.path, VOTER, 1), MILLPOND_E_FOREIGN);
  SAME(millpond_view((millpond_peer *)(void *)&of, NULL), MILLPOND_E_NULL);
  ((unsigned char *)&of.peer)[9] ^= 1;
  SAME(millpond_calm_answered(&of.peer, 1), MILLPOND_E_DAMAGED);
}

int main(void) {
  sizes_are_those_of_the_header();
  without_a_sign_of_a_queue_every_copy_is_answered();
  in_a_queue_copies_wait_until_they_are_due();
  who_is_not_validated_has_no_voice();
  mistakes_are_refused();
  return verdict("calm");
}
