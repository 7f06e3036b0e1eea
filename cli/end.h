/*
 * end.h - what the verbs cancel and kill share.
 */
#pragma once

/* The whole verb: asks for each JOB to end by POST /api/v1/jobs/JOB:VERB. */
int end_jobs(int argc, char **argv, const char *usage, const char *verb);
