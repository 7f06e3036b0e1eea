/*
 * users.h - the users that tasks run as, where the agent may choose: it is root and was given a
 * range of user ids.
 *
 * The tasks of a job have an id of the range for as long as they are on the node, and nobody
 * else has it then.  The first id of the range is no task's: as a group, of which every task is
 * a member, it may pass through the server's and the agent's folders, and read datasets.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

#include "base/base.h"

struct error;

#define USERS_MAX 1000000

struct users {
    uid_t group; /* the first id of the range */
    int count;   /* of ids that tasks may have, from group + 1 on; 0: they run as the agent */
};

/*
 * "FIRST-LAST"; NULL is none.  INVALID when it is no range, has root or an account of this
 * machine in it, or more than USERS_MAX ids; PRECONDITION when this process is not root.
 */
bool users_parse(const char *text, struct users *users, struct error *err) CHECKED;

/* One line for the log: as whom tasks run.  `*warn`: it is not as it should be. */
const char *users_text(const struct users *users, char *out, size_t out_size, bool *warn);

/* The id that comes after `uid` in the range, from its end to its beginning. */
uid_t users_next(const struct users *users, uid_t uid);

/* The id where the search for one for a job begins. */
uid_t users_first(const struct users *users, int64_t job);

/* The task's id and group in its start.json; 0 when it runs as the agent. */
uid_t users_of(const json_t *start);
uid_t users_group(const json_t *start);

/*
 * Gives the task's user what it works with, before it starts: parts of the folder of the
 * attempt, the checkpoints of the job; and lets it read the dataset.  DENIED when one of the
 * folders above these lets nobody pass, and is not the server's or the agent's own.
 */
bool users_give(const char *folder, const json_t *start, struct error *err) CHECKED;

/* The task is no more: nobody but the agent comes into its folder and, where it was the job's
 * last one here, into the job's. */
void users_take_back(const char *folder, const json_t *start, bool last);
