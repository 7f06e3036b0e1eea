/*
 * power_test.c - the power is cut while checkpoints are saved: the one before loads, and no
 * half of one is taken for a whole.
 */
/* Faults of docs/reliability.md: F13. */

#include <math.h>
#include <unistd.h>

#include "base/alloc.h"
#include "runtime/checkpoint.h"
#include "runtime/tensor.h"
#include "tests/unit/folder.h"
#include "tests/unit/power.h"
#include "tests/unit/test.h"

#define STEPS 5
#define NUMBERS 2000

static void save(const struct checkpoint_settings *settings, int64_t step)
{
    struct error err;
    struct checkpoint_item items[2] = {{.name = "w"}, {.name = "step"}};
    CHECK_OK(tensor_init(&items[0].tensor, F32, &SHAPE(NUMBERS), &err), &err);
    for (int i = 0; i < NUMBERS; i++)
        tensor_f32_mut(&items[0].tensor)[i] = (float)(step * 10 + i);
    CHECK_OK(tensor_init_scalar(&items[1].tensor, I64, (double)step, &err), &err);
    struct checkpoint_point point = {
        .step = step, .score = step % 2 ? 0.9 : (double)step, .graph = "abc"};
    CHECK_OK(checkpoint_save(settings, &point, items, 2, NULL, &err), &err);
    tensor_release(&items[0].tensor);
    tensor_release(&items[1].tensor);
}

/* The step that loads from the folder, 0: none; what is loaded is that step's, to the bit. */
static int64_t loaded_step(const char *folder)
{
    struct error err;
    struct checkpoint loaded;
    if (!checkpoint_load(folder, &loaded, &err))
        return 0;
    int64_t step = loaded.step;
    const struct tensor *w = checkpoint_find(&loaded, "w");
    CHECK(w);
    CHECK_INT(w->count, NUMBERS);
    for (int i = 0; i < NUMBERS; i++)
        CHECK(tensor_f32(w)[i] == (float)(step * 10 + i));
    CHECK_INT(tensor_i64(checkpoint_find(&loaded, "step"))[0], step);
    checkpoint_release(&loaded);
    return step;
}

TEST(power_cut_leaves_the_checkpoint_before)
{
    struct error err;
    char root[100], job[120];
    int done[STEPS + 1] = {0}, images = 0;
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    snprintf(root, sizeof(root), "%s", folder_path("disk"));
    snprintf(job, sizeof(job), "%s/checkpoints", root);
    CHECK_INT(mkdir(root, 0777), 0);
    const struct checkpoint_settings settings = {
        .folder = job, .epoch = 3, .keep_latest = 2, .keep_best = 1};
    power_record(root);
    CHECK_OK(checkpoint_claim(&settings, &err), &err);
    for (int step = 1; step <= STEPS; step++) {
        save(&settings, step);
        done[step] = power.calls_count; /* told: from here on it must be there */
    }
    int calls = power_stop();
    CHECK(calls > STEPS * 15);
    for (int cut = 0; cut <= calls; cut++) {
        int64_t told = 0;
        while (told < STEPS && done[told + 1] <= cut)
            told++;
        for (int way = 0; way < POWER_WAYS; way++) {
            int draws = way >= POWER_FIRST ? 4 : 1;
            for (int draw = 0; draw < draws; draw++, images++) {
                char name[40], image[200];
                snprintf(name, sizeof(name), "image-%d", images);
                snprintf(image, sizeof(image), "%s", folder_path(name));
                CHECK_INT(mkdir(image, 0777), 0);
                power_cut(root, cut, (enum power_way)way, (uint64_t)images, image);
                char *folder = alloc_printf("%s/checkpoints", image);
                int64_t step = loaded_step(folder);
                if (step < told || step > told + 1)
                    CHECK_STOP(
                        "cut after call %d of %d, way %d, draw %d: step %lld loads, %lld "
                        "was told",
                        cut, calls, way, draw, (long long)step, (long long)told);
                /* And the next attempt goes on from there. */
                const struct checkpoint_settings next = {
                    .folder = folder, .epoch = 4, .keep_latest = 2, .keep_best = 1};
                CHECK_OK(checkpoint_claim(&next, &err), &err);
                CHECK(loaded_step(folder) >= told);
                save(&next, step + 1);
                CHECK_INT(loaded_step(folder), step + 1);
                free(folder);
                folder_remove_below(image);
            }
        }
    }
    print_message("  %d disks\n", images);
}
