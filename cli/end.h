/*
 * end.h - what the verbs that ask something of jobs share: cancel, kill, pause ….
 */
#pragma once

#include "base/base.h"

/* A verb that asks for something of each JOB by POST /api/v1/jobs/JOB:VERB; with another method
 * by METHOD /api/v1/jobs/JOB, which answers nothing. */
struct end {
    const char *usage;
    const char *verb;
    const char *method; /* NULL: POST, with the verb */
    bool arrays;        /* also of all jobs of an array */
    const char *undo;   /* the verb with --undo; NULL: there is none */
};
int end_jobs(int argc, char **argv, const struct end *end);
