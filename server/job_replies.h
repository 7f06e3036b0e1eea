/*
 * job_replies.h - answers about single jobs, for whoever asks again before anything is written.
 *
 * Scripts ask for the same job again and again.  An answer holds as long as neither database
 * has committed anything since before it was read; what was written is never answered without.
 * Kept for those who see all projects: what others may see hangs on more.
 */
#pragma once

#include "base/base.h"

struct error;
struct job_replies;
struct request;

struct job_replies *job_replies_new(void);
void job_replies_free(struct job_replies *replies); /* NULL is fine */

/* As the databases are now, before a job is read: for job_replies_keep(). */
struct job_version {
    uint64_t control, metrics;
};
struct job_version job_replies_version(const struct request *req);

/* Answers a request for the job that its path names, if what is kept still holds. */
bool job_replies_find(struct request *req, struct job_version now);

/* Keeps what was answered (JSON, 200, with its ETag) to a request that began at `version`. */
void job_replies_keep(struct request *req, struct job_version version);
