/* gpus_test.c - what the agent makes of the driver's answers, later on. */

#include <jansson.h>

#include "scheduler/agent/gpus.h"
#include "tests/unit/test.h"

/* Two that were offered at the start; no claims on them are made here. */
static struct gpus two(void)
{
    struct gpus gpus = {.count = 2, .asked = true};
    for (int i = 0; i < 2; i++) {
        snprintf(gpus.list[i].uuid, sizeof(gpus.list[i].uuid), "GPU-%c", 'a' + i);
        snprintf(gpus.list[i].name, sizeof(gpus.list[i].name), "H100");
        gpus.list[i].lock = -1;
    }
    return gpus;
}

/* Takes in an answer; "": there was none. */
static bool look(struct gpus *gpus, const char *answer, uint64_t held)
{
    json_t *json = *answer ? json_loads(answer, 0, NULL) : NULL;
    CHECK(json || !*answer);
    bool changed = gpus_look(gpus, json, held, "/nonexistent");
    json_decref(json);
    return changed;
}

#define GPU_A "{\"uuid\": \"GPU-a\", \"name\": \"H100\", \"processes\": []}"
#define GPU_B "{\"uuid\": \"GPU-b\", \"name\": \"H100\", \"processes\": []}"
#define USED_A "{\"uuid\": \"GPU-a\", \"name\": \"H100\", \"processes\": [7]}"
#define ALL "{\"gpus\": [" GPU_A ", " GPU_B "]}"

TEST(gpus_go_away_and_come_back)
{
    struct gpus gpus = two();
    CHECK(!look(&gpus, ALL, 0));
    CHECK_INT(gpus_away(&gpus), 0);

    CHECK(look(&gpus, "{\"gpus\": [" GPU_B ", {\"uuid\": \"GPU-a\", \"error\": \"ECC\"}]}", 0));
    CHECK_INT(gpus_away(&gpus), 1);
    CHECK(gpus.list[0].lost);
    CHECK_TEXT(gpus.list[0].why, "ECC");
    CHECK(look(&gpus, ALL, 0));
    CHECK_INT(gpus_away(&gpus), 0);

    CHECK(look(&gpus, "{\"gpus\": [" GPU_A "]}", 3)); /* lost, whoever held it */
    CHECK_INT(gpus_away(&gpus), 2);
    CHECK(gpus.list[1].lost);
}

/* A process on one that a task of ours holds is that task's. */
TEST(gpus_used_by_others_are_away)
{
    struct gpus gpus = two();
    const char *used = "{\"gpus\": [" USED_A ", " GPU_B "]}";
    CHECK(!look(&gpus, used, 1));
    CHECK_INT(gpus_away(&gpus), 0);
    CHECK(gpus.list[0].busy);
    CHECK(look(&gpus, used, 0));
    CHECK_INT(gpus_away(&gpus), 1);
    CHECK(!gpus.list[0].lost);
    CHECK_TEXT(gpus.list[0].why, "process 7 uses it");
}

TEST(gpus_of_a_silent_driver_are_lost_at_the_third_time)
{
    struct gpus gpus = two();
    CHECK(!look(&gpus, "", 3));
    CHECK(!look(&gpus, "", 3));
    CHECK(!look(&gpus, ALL, 3)); /* it counts anew */
    CHECK(!look(&gpus, "", 3));
    CHECK(!look(&gpus, "", 3));
    CHECK(look(&gpus, "", 3));
    CHECK_INT(gpus_away(&gpus), 3);
}
