/*
 * match.h - which nodes suit a need by what they are: type and memory of their GPUs, and
 * labels.
 *
 * Nodes that are alike are of one kind; a need is compared with kinds, once, not with nodes.
 */
#pragma once

#include "scheduler/scheduler.h"

struct match_kind {
    char *gpu_type;
    int64_t gpu_memory_bytes; /* of each */
    struct scheduler_label *labels;
    int labels_count;
};

struct match { /* embedded; all zero is empty */
    struct match_kind *kinds;
    int count;
    int capacity;
};

void match_release(struct match *match);

/* Makes `copy` equal, with texts of its own. */
void match_copy(struct match *copy, const struct match *match);

/* The number of the node's kind; a new one raises `count`. */
int match_kind_of(struct match *match, const struct scheduler_node_info *node);

/* By kind whether its nodes suit, owned; NULL when the need asks for nothing of this sort. */
bool *match_need(const struct match *match, const struct scheduler_need *need);

/* Equal in all that decides where tasks of them may go. */
bool match_same(const struct scheduler_need *a, const struct scheduler_need *b);

/* Wherever a task of `b` has room, one of `a` has, too.  (False when that is not plain.) */
bool match_covers(const struct scheduler_need *a, const struct scheduler_need *b);
