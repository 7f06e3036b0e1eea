/* kubernetes_pod.c - pilots as pods: what is asked for, and what is read of them. */

#include <jansson.h>

#include "base/str.h"
#include "scheduler/engines/kubernetes.h"

/* --- what is asked for --- */

static json_t *resources(const struct scheduler_resources *each)
{
    json_t *limits =
        json_pack("{s:o, s:o}", "cpu", json_sprintf("%lldm", (long long)each->cpu_millis),
                  "memory", json_sprintf("%lld", (long long)each->memory_bytes));
    if (each->gpus)
        json_object_set_new(limits, "nvidia.com/gpu",
                            json_sprintf("%lld", (long long)each->gpus));
    return json_pack("{s:O, s:o}", "requests", limits, "limits", limits);
}

#define GRACE_MORE_S 10 /* for the agent to tell the last of it */

/* Of the server's folder a task sees no more than it needs. */
static json_t *mounts(const char *folder)
{
    return json_pack("[{s:s, s:s, s:o}, {s:s, s:s, s:o, s:b}]", "name", "data", "subPath",
                     "jobs", "mountPath", json_sprintf("%s/jobs", folder), "name", "data",
                     "subPath", "datasets", "mountPath", json_sprintf("%s/datasets", folder),
                     "readOnly", 1);
}

static json_t *container(const struct settings *settings, const struct engine_pilot *pilot,
                         const char *pod)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:[s,s,s], s:[{s:s, s:{s:{s:s, s:s}}}], s:o, s:s, s:{s:b, s:{s:[s]}}}",
        "name", "agent", "image", settings->image, "command", "/bin/sh", "-c", pilot->script,
        "env", "name", "TRAINYARD_TOKEN", "valueFrom", "secretKeyRef", "name", pod, "key",
        "token", "resources", resources(&pilot->queue->like.capacity),
        "terminationMessagePolicy", "FallbackToLogsOnError", "securityContext",
        "allowPrivilegeEscalation", 0, "capabilities", "drop", "ALL");
    if (*settings->claim)
        json_object_set_new(json, "volumeMounts", mounts(settings->claim_path));
    return json;
}

char *kubernetes_pod_make(const struct settings *settings, const struct engine_pilot *pilot,
                          const char *tag, const char *pod)
{
    json_t *spec = json_pack("{s:s, s:b, s:b, s:[o]}", "restartPolicy", "Never",
                             "automountServiceAccountToken", 0, "enableServiceLinks", 0,
                             "containers", container(settings, pilot, pod));
    json_object_set_new(spec, "terminationGracePeriodSeconds",
                        json_integer(settings->grace_s + GRACE_MORE_S));
    json_t *selector = json_loads(pilot->queue->node_selector, 0, NULL);
    if (json_object_size(selector))
        json_object_set(spec, "nodeSelector", selector);
    json_decref(selector);
    if (pilot->queue->time_minutes)
        json_object_set_new(spec, "activeDeadlineSeconds",
                            json_integer(pilot->queue->time_minutes * 60));
    if (*settings->claim)
        json_object_set_new(spec, "volumes",
                            json_pack("[{s:s, s:{s:s}}]", "name", "data",
                                      "persistentVolumeClaim", "claimName", settings->claim));
    json_t *json = json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:s, s:s}}, s:o}", "apiVersion", "v1",
                             "kind", "Pod", "metadata", "name", pod, "labels",
                             "app.kubernetes.io/name", "trainyard-pilot", KUBERNETES_TAG_LABEL,
                             tag, KUBERNETES_PILOT_LABEL, pilot->name, "spec", spec);
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

char *kubernetes_pod_secret(const char *token, const char *pod, const char *uid)
{
    json_t *json = json_pack("{s:s, s:s, s:s, s:{s:s, s:[{s:s, s:s, s:s, s:s}]}, s:{s:s}}",
                             "apiVersion", "v1", "kind", "Secret", "type", "Opaque", "metadata",
                             "name", pod, "ownerReferences", "apiVersion", "v1", "kind", "Pod",
                             "name", pod, "uid", uid, "stringData", "token", token);
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

/* --- what is read --- */

static const char *text_at(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* The condition PodScheduled: whether a machine was found for it. */
static const json_t *scheduled(const json_t *status)
{
    size_t i;
    const json_t *condition, *list = json_object_get(status, "conditions");
    json_array_foreach(list, i, condition)
    {
        if (strcmp(text_at(condition, "type"), "PodScheduled") == 0)
            return condition;
    }
    return NULL;
}

/* Why its container waits, or how it ended: an object with `reason` and `message`. */
static const json_t *container_is(const json_t *status)
{
    const json_t *first = json_array_get(json_object_get(status, "containerStatuses"), 0);
    const json_t *state = json_object_get(first, "state");
    const json_t *waiting = json_object_get(state, "waiting");
    return waiting ? waiting : json_object_get(state, "terminated");
}

/* "Pending (Unschedulable: 0/3 nodes are available)": one line, cut to fit. */
static void say(struct pilots_seen *seen, const char *phase, const char *reason,
                const char *message)
{
    if (*reason)
        snprintf(seen->says, sizeof(seen->says), "%.30s (%.60s%s%.180s)", phase, reason,
                 *message ? ": " : "", message);
    else
        snprintf(seen->says, sizeof(seen->says), "%.30s", phase);
    size_t size = strlen(seen->says);
    while (size && !str_is_utf8(seen->says, size))
        seen->says[--size] = 0; /* cut within a character */
    for (char *c = seen->says; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
}

bool kubernetes_pod_read(const json_t *pod, struct pilots_seen *seen)
{
    const json_t *metadata = json_object_get(pod, "metadata");
    const json_t *status = json_object_get(pod, "status");
    const char *id = text_at(metadata, "name");
    const char *name = text_at(json_object_get(metadata, "labels"), KUBERNETES_PILOT_LABEL);
    const char *phase = text_at(status, "phase");
    if (!*id || strlen(id) >= PILOTS_ID_BYTES || !*name || strlen(name) >= PILOTS_NAME_BYTES)
        return false;
    *seen = (struct pilots_seen){.phase = PILOTS_RUNS};
    snprintf(seen->id, sizeof(seen->id), "%s", id);
    snprintf(seen->name, sizeof(seen->name), "%s", name);

    const json_t *place = scheduled(status), *container = container_is(status);
    bool placed = strcmp(text_at(place, "status"), "True") == 0;
    bool ended = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
    if (json_object_get(metadata, "deletionTimestamp")) {
        seen->phase = PILOTS_ENDED;
        say(seen, "Terminating", text_at(status, "reason"), text_at(status, "message"));
    } else if (*text_at(status, "reason")) { /* "Evicted", "DeadlineExceeded" */
        seen->phase = ended ? PILOTS_ENDED : PILOTS_RUNS;
        say(seen, phase, text_at(status, "reason"), text_at(status, "message"));
    } else if (ended || placed || strcmp(phase, "Running") == 0) {
        /* One that has a machine must come soon, though it is "Pending" still. */
        seen->phase = ended ? PILOTS_ENDED : PILOTS_RUNS;
        say(seen, phase, text_at(container, "reason"), text_at(container, "message"));
    } else {
        seen->phase = PILOTS_WAITS;
        say(seen, phase, text_at(place, "reason"), text_at(place, "message"));
    }
    return true;
}
