/*
 * datasets.h - datasets that were fetched from the server, one copy for all tasks of the node.
 *
 *   AGENT/datasets/NAME-ID/       whole; ID is of its dataset.json, whose hashes its files have
 *   AGENT/datasets/.NAME-ID.part/ under way: files that are there have been checked
 *
 * A copy is never changed.  Those that no task uses stay for the next one, and go, the longest
 * unused first, when room is needed: for no more than `bytes_max` in all, and for the disk to
 * keep LIMIT_DISK_LEFT_BYTES free.  By the agent's thread alone.
 */
#pragma once

#include "base/base.h"

struct datasets;
struct error;

enum datasets_state {
    DATASETS_READY,  /* it is there */
    DATASETS_MINE,   /* the caller brings it: datasets_publish(), or datasets_release() */
    DATASETS_OTHERS, /* another task is bringing it: ask again */
    DATASETS_FULL,   /* there is no room, `err` says why */
};

/* `attempts_folder` tells what is in use: start.json of each has its "dataset_folder". */
struct datasets *datasets_new(const char *agent_folder, const char *attempts_folder,
                              int64_t bytes_max);
void datasets_free(struct datasets *datasets); /* NULL is fine */

/* "AGENT/datasets/NAME-ID"; owned.  `list` is dataset.json. */
char *datasets_place(const struct datasets *datasets, const char *name, const void *list,
                     size_t list_size);

/* Where to put the files of the copy at `place` until it is whole; owned. */
char *datasets_part(const char *place);

/* `bytes` is the sum of its files'. */
enum datasets_state datasets_take(struct datasets *datasets, const char *place, int64_t bytes,
                                  const void *owner, struct error *err);

/* All files are there: it gets its name. */
bool datasets_publish(struct datasets *datasets, const char *place, const void *owner,
                      struct error *err) CHECKED;

/* The owner brings nothing any more; what came stays for who asks next. */
void datasets_release(struct datasets *datasets, const void *owner);
