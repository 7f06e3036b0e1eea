/* kubernetes_test.c - what is read of pods, and what is said of them. */

#include <jansson.h>

#include "base/arena.h"
#include "base/str.h"
#include "scheduler/engines/kubernetes.h"
#include "tests/unit/test.h"

#define HEAD                                                                                   \
    "{\"metadata\": {\"name\": \"p\", \"labels\": {\"trainyard-pilot\": "                      \
    "\"kubernetes-q-1\"}}, "                                                                   \
    "\"status\": "

static struct pilots_seen read(const char *text)
{
    struct pilots_seen seen;
    json_t *pod = json_loads(text, 0, NULL);
    assert_non_null(pod);
    CHECK(kubernetes_pod_read(pod, &seen));
    CHECK_TEXT(seen.id, "p");
    CHECK_TEXT(seen.name, "kubernetes-q-1");
    json_decref(pod);
    return seen;
}

TEST(one_without_a_machine_waits)
{
    struct pilots_seen seen =
        read(HEAD "{\"phase\": \"Pending\", \"conditions\": [{\"type\": \"Ready\"}, {\"type\": "
                  "\"PodScheduled\", \"status\": \"False\", \"reason\": \"Unschedulable\", "
                  "\"message\": \"0/3 nodes are available\"}]}}");
    CHECK(seen.phase == PILOTS_WAITS);
    CHECK_TEXT(seen.says, "Pending (Unschedulable: 0/3 nodes are available)");
    seen = read(HEAD "{\"phase\": \"Pending\"}}");
    CHECK(seen.phase == PILOTS_WAITS);
    CHECK_TEXT(seen.says, "Pending");
    seen = read(HEAD "{}}");
    CHECK(seen.phase == PILOTS_WAITS);
}

/* It has a machine, and must come: an image that is not there is waited for no longer than
 * that. */
TEST(one_with_a_machine_has_begun)
{
    struct pilots_seen seen =
        read(HEAD "{\"phase\": \"Pending\", \"conditions\": [{\"type\": \"PodScheduled\", "
                  "\"status\": \"True\"}], \"containerStatuses\": [{\"state\": {\"waiting\": "
                  "{\"reason\": \"ImagePullBackOff\", \"message\": \"no such\\nimage\"}}}]}}");
    CHECK(seen.phase == PILOTS_RUNS);
    CHECK_TEXT(seen.says, "Pending (ImagePullBackOff: no such image)");
    seen = read(HEAD "{\"phase\": \"Running\"}}");
    CHECK(seen.phase == PILOTS_RUNS);
    CHECK_TEXT(seen.says, "Running");
}

TEST(the_end_is_told_with_its_reason)
{
    struct pilots_seen seen =
        read(HEAD "{\"phase\": \"Failed\", \"containerStatuses\": [{\"state\": "
                  "{\"terminated\": {\"reason\": \"OOMKilled\"}}}]}}");
    CHECK(seen.phase == PILOTS_ENDED);
    CHECK_TEXT(seen.says, "Failed (OOMKilled)");
    seen =
        read(HEAD "{\"phase\": \"Failed\", \"reason\": \"Evicted\", \"message\": \"disk\"}}");
    CHECK(seen.phase == PILOTS_ENDED);
    CHECK_TEXT(seen.says, "Failed (Evicted: disk)");
    seen = read("{\"metadata\": {\"name\": \"p\", \"deletionTimestamp\": \"now\", \"labels\": "
                "{\"trainyard-pilot\": \"kubernetes-q-1\"}}, \"status\": {\"phase\": "
                "\"Running\"}}");
    CHECK(seen.phase == PILOTS_ENDED);
    CHECK_TEXT(seen.says, "Terminating");
}

TEST(what_is_no_pod_of_ours_is_passed_over)
{
    const char *const others[] = {"{}", "[]", "{\"metadata\": 1, \"status\": []}",
                                  "{\"metadata\": {\"name\": \"p\"}}",
                                  "{\"metadata\": {\"name\": 5}}"};
    for (int i = 0; i < ARRAY_LEN(others); i++) {
        struct pilots_seen seen;
        json_t *pod = json_loads(others[i], 0, NULL);
        CHECK(!kubernetes_pod_read(pod, &seen));
        json_decref(pod);
    }
}

/* Words of any length and in any script are cut to fit, as UTF-8. */
TEST(long_words_are_cut)
{
    struct str text = {0};
    str_add(&text, HEAD "{\"phase\": \"Failed\", \"reason\": \"x");
    for (int i = 0; i < 300; i++)
        str_add(&text, "\xc3\xa9");
    str_add(&text, "\", \"message\": \"y");
    for (int i = 0; i < 600; i++)
        str_add(&text, "\xc3\xa9");
    str_add(&text, "\"}}");
    struct pilots_seen seen = read(str_text(&text));
    CHECK(str_is_utf8(seen.says, strlen(seen.says)));
    CHECK(strncmp(seen.says, "Failed (x", 9) == 0);
    str_release(&text);
}

TEST(a_pod_is_what_the_settings_say)
{
    static const char text[] =
        "{\"engine\": \"kubernetes\", \"image\": \"i\", \"claim\": \"c\", \"claim_path\": "
        "\"/d\", \"queues\": {\"q\": {\"cpus\": 2, \"memory_bytes\": 1073741824, \"gpus\": 3, "
        "\"time_minutes\": 5, \"node_selector\": {\"a\": \"b\"}}}}";
    struct arena *arena = arena_new();
    struct settings settings;
    struct error err;
    CHECK_OK(settings_parse(text, strlen(text), arena, &settings, &err), &err);
    struct engine_pilot pilot = {"kubernetes-q-1", "ty_secret", &settings.queues[0], "script"};
    char *made = kubernetes_pod_make(&settings, &pilot, "tag", "pod-1");
    char *secret = kubernetes_pod_secret("ty_secret", "pod-1", "uid-1");
    assert_null(strstr(made, "ty_secret")); /* who may look at pods may not see it */
    assert_non_null(strstr(secret, "ty_secret"));
    json_t *pod = json_loads(made, 0, NULL);
    json_t *spec = json_object_get(pod, "spec");
    json_t *container = json_array_get(json_object_get(spec, "containers"), 0);
    json_t *limits = json_object_get(json_object_get(container, "resources"), "limits");
    CHECK_TEXT(json_string_value(json_object_get(limits, "cpu")), "2000m");
    CHECK_TEXT(json_string_value(json_object_get(limits, "nvidia.com/gpu")), "3");
    CHECK_INT(json_integer_value(json_object_get(spec, "activeDeadlineSeconds")), 300);
    CHECK_TEXT(json_string_value(json_object_get(spec, "restartPolicy")), "Never");
    CHECK_TEXT(json_string_value(json_object_get(json_object_get(spec, "nodeSelector"), "a")),
               "b");
    CHECK_INT(json_array_size(json_object_get(container, "volumeMounts")), 2);
    json_decref(pod);
    free(made);
    free(secret);
    arena_free(arena);
}
