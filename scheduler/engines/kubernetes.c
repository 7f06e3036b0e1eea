/* kubernetes.c - Kubernetes as an engine. */

#include <jansson.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "scheduler/engines/kubernetes.h"

#define CALL_MS 15000
#define CANCEL_MS 5000     /* of all together: also at the end of the server */
#define PAGE 200           /* pods asked for at once */
#define PAGES_MAX 10       /* more than all pilots that may be, twice */
#define CLEANED_AT_ONCE 16 /* pods that have ended, taken away with each look */

struct kubernetes {
    const struct settings *settings;
    struct kubernetes_api api;
    char tag[24];
};

static void *kubernetes_open(const struct settings *settings, const char *tag,
                             const atomic_bool *stop, struct error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    if (!*settings->url && (!host || !port))
        return fail_null(err, INVALID,
                         "/url is missing, and this is no pod (KUBERNETES_SERVICE_HOST)");
    struct kubernetes *self = alloc_bytes(sizeof(*self));
    self->settings = settings;
    self->api = (struct kubernetes_api){
        .url = *settings->url ? alloc_text(settings->url)
                              : alloc_printf("https://%s:%s", host, port),
        .token_file = settings->token_file,
        .ca_file = settings->ca_file,
        .stop = stop,
        .timeout_ms = CALL_MS,
    };
    snprintf(self->tag, sizeof(self->tag), "%s", tag);
    return self;
}

static void kubernetes_close(void *self)
{
    struct kubernetes *kubernetes = self;
    free(kubernetes->api.url);
    free(kubernetes);
}

static bool delete (const struct kubernetes *self, const struct kubernetes_api *api,
                    const char *pod, struct error *err)
{
    json_t *answer;
    char *path = alloc_printf("/api/v1/namespaces/%s/pods/%s", self->settings->namespace, pod);
    bool ok =
        kubernetes_http_call(api, "DELETE", path, NULL, &answer, err) || err->code == NOT_FOUND;
    json_decref(answer);
    free(path);
    return ok;
}

/* --- list --- */

/* What a list brought: the pilots, and which of their pods are to be taken away. */
struct list {
    struct pilots_seen *seen;
    bool *clean;
    int count;
};

/* Pods that have ended stay until somebody deletes them; what they said was read now. */
static void clean(const struct kubernetes *self, const struct list *list)
{
    int cleaned = 0;
    for (int i = 0; i < list->count && cleaned < CLEANED_AT_ONCE; i++) {
        struct error err;
        if (!list->clean[i])
            continue;
        cleaned++;
        if (!delete (self, &self->api, list->seen[i].id, &err)) {
            char text[600];
            log_line(LOG_WARN, "engine", "doing=clean msg=%s",
                     log_quote(err.text, text, sizeof(text)));
            return; /* the next look tries again */
        }
    }
}

static void list_add(struct list *list, const json_t *pod)
{
    struct pilots_seen *seen = &list->seen[list->count];
    if (!kubernetes_pod_read(pod, seen))
        return;
    const json_t *metadata = json_object_get(pod, "metadata");
    list->clean[list->count] =
        seen->phase == PILOTS_ENDED && !json_object_get(metadata, "deletionTimestamp");
    list->count++;
}

static bool list_page(const struct kubernetes *self, char **next, struct list *list,
                      struct error *err)
{
    json_t *answer;
    char *path = alloc_printf("/api/v1/namespaces/%s/pods?labelSelector=" KUBERNETES_TAG_LABEL
                              "%%3D%s&limit=%d%s%s",
                              self->settings->namespace, self->tag, PAGE,
                              *next ? "&continue=" : "", *next ? *next : "");
    free(*next);
    *next = NULL;
    bool ok = kubernetes_http_call(&self->api, "GET", path, NULL, &answer, err);
    free(path);
    if (!ok)
        return false;
    const json_t *items = json_object_get(answer, "items");
    ok = json_is_array(items) ||
         fail(err, UNAVAILABLE, "the API's list of pods has no items: is this Kubernetes?");
    size_t i;
    const json_t *item;
    json_array_foreach(items, i, item)
    {
        if (i < PAGE)
            list_add(list, item);
    }
    const char *more =
        json_string_value(json_object_get(json_object_get(answer, "metadata"), "continue"));
    /* It is base64 for URLs, as the API says. */
    if (more && *more && strlen(more) < 4096 && !strpbrk(more, "&# \r\n"))
        *next = alloc_text(more);
    json_decref(answer);
    return ok;
}

static bool kubernetes_list(void *self, struct arena *arena, struct pilots_seen **seen,
                            int *seen_count, struct error *err)
{
    char *next = NULL;
    bool ok = true;
    size_t most = (size_t)PAGE * PAGES_MAX;
    struct list list = {.seen = arena_array(arena, most, sizeof(*list.seen)),
                        .clean = arena_array(arena, most, sizeof(*list.clean))};
    int pages = 0;
    do
        ok = list_page(self, &next, &list, err);
    while (ok && ++pages < PAGES_MAX && next);
    if (ok && next)
        ok = fail(err, EXHAUSTED, "over %d pods bear our tag", PAGE * PAGES_MAX);
    free(next);
    if (ok)
        clean(self, &list);
    *seen = list.seen;
    *seen_count = list.count;
    return ok;
}

/* --- submit --- */

/* When the answer is lost, the pod is found by its label, gets no secret, and is cancelled when
 * it has not joined in time. */
static bool make_pod(const struct kubernetes *self, const struct engine_pilot *pilot,
                     const char *pod, char **uid, struct error *err)
{
    json_t *answer;
    char *path = alloc_printf("/api/v1/namespaces/%s/pods", self->settings->namespace);
    char *body = kubernetes_pod_make(self->settings, pilot, self->tag, pod);
    bool ok = kubernetes_http_call(&self->api, "POST", path, body, &answer, err);
    const char *text =
        json_string_value(json_object_get(json_object_get(answer, "metadata"), "uid"));
    if (ok && !text)
        ok = fail(err, UNAVAILABLE, "the API made pod %s, and says no uid", pod);
    *uid = ok ? alloc_text(text) : NULL;
    json_decref(answer);
    free(body);
    free(path);
    return ok;
}

static bool make_secret(const struct kubernetes *self, const char *token, const char *pod,
                        const char *uid, struct error *err)
{
    json_t *answer;
    char *path = alloc_printf("/api/v1/namespaces/%s/secrets", self->settings->namespace);
    char *body = kubernetes_pod_secret(token, pod, uid);
    bool ok = kubernetes_http_call(&self->api, "POST", path, body, &answer, err);
    json_decref(answer);
    free(body);
    free(path);
    return ok;
}

static bool kubernetes_submit(void *self, const struct engine_pilot *pilot,
                              char id[PILOTS_ID_BYTES], struct error *err)
{
    struct kubernetes *kubernetes = self;
    uint32_t number = 0;
    char *uid;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return error_errno(err, UNAVAILABLE, "getrandom");
    snprintf(id, PILOTS_ID_BYTES, "trainyard-%.10s-%.80s-%08x", kubernetes->tag, pilot->name,
             (unsigned)number);
    if (!make_pod(kubernetes, pilot, id, &uid, err))
        return false;
    bool ok = make_secret(kubernetes, pilot->token, id, uid, err);
    free(uid);
    struct error unread;
    /* Without its secret the pod would wait for ever; if it stays, it is found by its label. */
    if (!ok && !delete (kubernetes, &kubernetes->api, id, &unread))
        error_prefix(err, "pod %s stays: ", id);
    return ok;
}

/* --- cancel --- */

static bool kubernetes_cancel(void *self, const char *const *ids, int ids_count,
                              struct error *err)
{
    struct kubernetes *kubernetes = self;
    struct kubernetes_api api = kubernetes->api;
    uint64_t end_us = clock_monotonic_us() + CANCEL_MS * UINT64_C(1000);
    bool ok = true;
    api.stop = NULL; /* it is what is left to be done then */
    for (int i = 0; i < ids_count; i++) {
        uint64_t now_us = clock_monotonic_us();
        struct error one;
        if (now_us >= end_us)
            return fail(err, DEADLINE, "%d pods are not cancelled after %d ms", ids_count - i,
                        CANCEL_MS);
        api.timeout_ms = (int)((end_us - now_us) / 1000) + 1;
        if (!delete (kubernetes, &api, ids[i], &one)) {
            *err = one;
            ok = false;
        }
    }
    return ok;
}

const struct engine_kind kubernetes_engine = {
    .name = "kubernetes",
    .title = "Kubernetes",
    .what = "pod",
    .open = kubernetes_open,
    .close = kubernetes_close,
    .list = kubernetes_list,
    .submit = kubernetes_submit,
    .cancel = kubernetes_cancel,
};
