/*
 * kubernetes.h - Kubernetes as an engine: pods, by its API.
 *
 * A pilot is one pod that is never started again.  Its join token is in a secret that the pod
 * owns, so that it goes with the pod.
 */
#pragma once

#include "scheduler/engines/engine.h"

extern const struct engine_kind kubernetes_engine;

/* --- between kubernetes*.c --- */

/* The API server, and what lets us in. */
struct kubernetes_api {
    char *url; /* https://10.0.0.1:443 */
    const char *token_file;
    const char *ca_file;
    const atomic_bool *stop; /* ends a call early; NULL */
    int timeout_ms;
};

/*
 * One call.  `body` may be NULL.  The answer's JSON is NULL when it has none, and the caller's
 * (json_decref).  Fails with the API's own words: NOT_FOUND for 404, EXISTS for 409, DENIED for
 * 401 and 403, else UNAVAILABLE; EXHAUSTED for an answer that is too long.
 */
struct json_t;
bool kubernetes_http_call(const struct kubernetes_api *api, const char *method,
                          const char *path, const char *body, struct json_t **answer,
                          struct error *err) CHECKED;

#define KUBERNETES_TAG_LABEL "trainyard-tag"
#define KUBERNETES_PILOT_LABEL "trainyard-pilot"

/* The pod of a pilot, and the secret that it reads its token from, as JSON: owned texts. */
char *kubernetes_pod_make(const struct settings *settings, const struct engine_pilot *pilot,
                          const char *tag, const char *pod);
char *kubernetes_pod_secret(const char *token, const char *pod, const char *uid);

/* One pod of a list.  False when it is none of ours. */
bool kubernetes_pod_read(const struct json_t *pod, struct pilots_seen *seen);
