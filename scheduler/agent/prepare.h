/*
 * prepare.h - what a task waits for before it starts: the files of a program, what it needs of
 * a server's folder that this node does not see, and the addresses of the tasks that it works
 * with.
 *
 * What takes longer than a moment is told in the task's stderr.
 *
 * Nothing of it is kept: an agent that was killed begins anew.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct agent_task_ref;
struct datasets;
struct error;
struct link;
#define PREPARE_CERTIFICATE                                                                    \
    "tasks.pem" /* in the folder: of the attempt's tasks, with its key */

struct prepare;

enum prepare_result {
    PREPARE_DONE,
    PREPARE_MORE,   /* it is another task's turn */
    PREPARE_LATER,  /* at prepare_again_us(), as others are not there yet */
    PREPARE_ABSENT, /* the server does not answer, `err` says why */
    PREPARE_FAILED, /* it cannot be had, `err` says why */
};

/* Whether a task has anything to wait for: programs, tasks that train one model, and those that
 * work on copies. */
bool prepare_wanted(const json_t *start);

/* For the attempt in `folder`; `start` is start.json, which gets its "cluster".  `datasets` are
 * the node's copies; borrowed, as the others. */
struct prepare *prepare_new(const char *folder, json_t *start, struct datasets *datasets);
void prepare_free(struct prepare *prepare); /* NULL is fine */

/* Does a bounded piece of it; `host` is how other nodes reach this one. */
enum prepare_result prepare_go_on(struct prepare *prepare, struct link *link,
                                  const struct agent_task_ref *task, const char *host,
                                  struct error *err);

/* Monotonic, microseconds; meaningful after PREPARE_LATER. */
uint64_t prepare_again_us(const struct prepare *prepare);
