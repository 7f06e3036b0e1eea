/*
 * fuzz_engine.c - what is read of an engine: its settings, what squeue said, and pods of the
 * Kubernetes API.  The first byte says which.
 */

#include <jansson.h>

#include "scheduler/engines/kubernetes.h"
#include "scheduler/engines/slurm.h"
#include "tests/fuzz/fuzz.h"

/* What is taken has the bounds that others rely on. */
static void read_settings(const char *text, size_t size, struct arena *arena)
{
    struct settings settings;
    struct error err = {0};
    if (!settings_parse(text, size, arena, &settings, &err)) {
        FUZZ_CHECK(err.code == INVALID && err.text[0]);
        return;
    }
    int places = 0;
    FUZZ_CHECK(settings.queues_count >= 1 && settings.queues_count <= SETTINGS_QUEUES_MAX);
    for (int i = 0; i < settings.queues_count; i++) {
        const struct pilots_bounds *bounds = &settings.queues[i].bounds;
        FUZZ_CHECK(bounds->min >= 0 && bounds->min <= bounds->max && bounds->queue[0]);
        FUZZ_CHECK(settings.queues[i].like.capacity.cpu_millis > 0);
        places += bounds->max;
    }
    FUZZ_CHECK(places <= PILOTS_PLACES_MAX);
}

static void check_seen(const struct pilots_seen *seen)
{
    FUZZ_CHECK(seen->id[0] && strlen(seen->id) < PILOTS_ID_BYTES);
    FUZZ_CHECK(strlen(seen->name) < PILOTS_NAME_BYTES);
    FUZZ_CHECK(strlen(seen->says) < PILOTS_SAYS_BYTES);
}

static void read_squeue(const char *text, struct arena *arena)
{
    struct pilots_seen *seen;
    int count;
    slurm_read(text, "trainyard-ab-", arena, &seen, &count);
    for (int i = 0; i < count; i++)
        check_seen(&seen[i]);
}

static void read_pod(const char *text, size_t size)
{
    struct pilots_seen seen;
    json_t *pod = json_loadb(text, size, 0, NULL);
    if (pod && kubernetes_pod_read(pod, &seen)) {
        check_seen(&seen);
        FUZZ_CHECK(str_is_utf8(seen.says, strlen(seen.says)));
    }
    json_decref(pod);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct arena *arena = arena_new();
    char *text = strndup((const char *)data + 1, size - 1);
    FUZZ_CHECK(text);
    if (data[0] == 's')
        read_settings(text, strlen(text), arena);
    else if (data[0] == 'q')
        read_squeue(text, arena);
    else
        read_pod(text, strlen(text));
    free(text);
    arena_free(arena);
    return 0;
}
