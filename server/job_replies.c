/* job_replies.c - a table of few places, by the text that names the job. */

#include "server/job_replies.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "db/jobs.h"
#include "server/reply.h"
#include "server/request.h"

enum { PLACES = 256, KEPT_BYTES = 16 << 10, ETAG_BYTES = 24 };

struct place {
    char job[DB_JOB_ID_BYTES]; /* "7" or "job_01…"; "": empty */
    struct job_version version;
    char etag[ETAG_BYTES];
    char *json;
    size_t size;
};

struct job_replies {
    pthread_mutex_t lock; /* guards all below */
    struct place places[PLACES];
};

struct job_replies *job_replies_new(void)
{
    struct job_replies *replies = alloc_bytes(sizeof(*replies));
    pthread_mutex_init(&replies->lock, NULL);
    return replies;
}

void job_replies_free(struct job_replies *replies)
{
    if (!replies)
        return;
    for (int i = 0; i < PLACES; i++)
        free(replies->places[i].json);
    pthread_mutex_destroy(&replies->lock);
    free(replies);
}

struct job_version job_replies_version(const struct request *req)
{
    const struct db *db = req->services->db;
    return (struct job_version){db_commits(db, DB_CONTROL), db_commits(db, DB_METRICS)};
}

/* NULL: the text may be a name, or he may not see all that there is. */
static struct place *place_of(const struct request *req)
{
    const char *job = req->params[0];
    size_t size = strlen(job);
    bool number = strspn(job, "0123456789") == size;
    if (!req->services->job_replies || req->user.role == ROLE_NONE || size >= DB_JOB_ID_BYTES ||
        !(number || strncmp(job, "job_", 4) == 0))
        return NULL;
    uint32_t hash = 0;
    for (const char *c = job; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    return &req->services->job_replies->places[hash % PLACES];
}

bool job_replies_find(struct request *req, struct job_version now)
{
    struct place *place = place_of(req);
    if (!place)
        return false;
    char *json = NULL;
    size_t size = 0;
    char etag[ETAG_BYTES];
    pthread_mutex_lock(&req->services->job_replies->lock);
    if (place->version.control == now.control && place->version.metrics == now.metrics &&
        strcmp(place->job, req->params[0]) == 0) {
        size = place->size;
        json = arena_alloc(req->arena, size);
        memcpy(json, place->json, size);
        memcpy(etag, place->etag, sizeof(etag));
    }
    pthread_mutex_unlock(&req->services->job_replies->lock);
    if (!json)
        return false;
    reply_header(req, "ETag", arena_text(req->arena, etag));
    return reply_bytes(req, 200, "application/json", json, size);
}

void job_replies_keep(struct request *req, struct job_version version)
{
    struct place *place = place_of(req);
    const struct reply *reply = &req->reply;
    const char *etag = url_find(reply->headers, reply->headers_count, "ETag", true);
    if (!place || reply->status != 200 || reply->size > KEPT_BYTES || !etag ||
        strlen(etag) >= ETAG_BYTES)
        return;
    char *json = alloc_bytes(reply->size);
    memcpy(json, reply->bytes, reply->size);
    pthread_mutex_lock(&req->services->job_replies->lock);
    free(place->json);
    snprintf(place->job, sizeof(place->job), "%s", req->params[0]);
    snprintf(place->etag, sizeof(place->etag), "%s", etag);
    place->version = version;
    place->json = json;
    place->size = reply->size;
    pthread_mutex_unlock(&req->services->job_replies->lock);
}
