/* checkpoint_test.c - publication: whole or not at all, kept as told, fenced, found again. */
/* Faults of docs/reliability.md: F13 F24. */

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "base/str.h"
#include "runtime/checkpoint.h"
#include "runtime/io/bundle.h"
#include "runtime/io/file.h"
#include "tests/unit/folder.h"
#include "tests/unit/test.h"

/* What other tasks write: "v" in two slices, one for each. */
static bool write_shards(void *arg, const char *const *prefixes, struct error *err)
{
    const float *rows = arg;
    for (int i = 0; i < 2; i++) {
        struct tensor part;
        const struct bundle_slice slice = {.rank = 1, .start = {i * 2}, .length = {2}};
        struct bundle_writer *writer = bundle_writer_open(prefixes[i], err);
        if (!writer)
            return false;
        CHECK_OK(tensor_init_copy(&part, F32, &SHAPE(2), rows + i * 2, err), err);
        bool ok = bundle_writer_add_slice(writer, "v", &SHAPE(4), &slice, &part, err);
        tensor_release(&part);
        if (!bundle_writer_finish(writer, err) || !ok)
            return false;
    }
    return true;
}

static bool sharded; /* what save() writes */

static bool save(const struct checkpoint_settings *settings, int64_t step, double score,
                 struct error *err)
{
    float rows[4] = {(float)step, (float)step + 1, (float)step + 2, (float)step + 3};
    const struct checkpoint_shards shards = {.count = 2, .write = write_shards, .arg = rows};
    struct checkpoint_item items[2] = {{.name = "w"}, {.name = "step"}};
    CHECK_OK(tensor_init(&items[0].tensor, F32, &SHAPE(1000), err), err);
    for (int i = 0; i < 1000; i++)
        tensor_f32_mut(&items[0].tensor)[i] = (float)(step + i);
    CHECK_OK(tensor_init_scalar(&items[1].tensor, I64, (double)step, err), err);
    struct checkpoint_point point = {.step = step, .score = score, .graph = "abc"};
    bool ok = checkpoint_save(settings, &point, items, 2, sharded ? &shards : NULL, err);
    tensor_release(&items[0].tensor);
    tensor_release(&items[1].tensor);
    return ok;
}

static void flip(const char *path, size_t place)
{
    struct error err;
    struct str bytes = {0};
    CHECK_OK(file_read(path, 1 << 20, &bytes, &err), &err);
    bytes.data[place] = (char)(bytes.data[place] ^ 1);
    CHECK_OK(file_write(path, bytes.data, bytes.size, &err), &err);
    str_release(&bytes);
}

static bool is_there(const char *name)
{
    return access(folder_path(name), F_OK) == 0;
}

TEST(checkpoint_loads_what_was_saved)
{
    struct error err;
    struct checkpoint loaded;
    struct checkpoint_settings settings = {
        .folder = folder_path("a"), .epoch = 3, .keep_latest = 2};
    CHECK_FAILS(checkpoint_load(settings.folder, &loaded, &err), &err, NOT_FOUND);
    CHECK_OK(checkpoint_claim(&settings, &err), &err);
    CHECK_FAILS(checkpoint_load(settings.folder, &loaded, &err), &err, NOT_FOUND);
    CHECK_OK(save(&settings, 10, (double)NAN, &err), &err);
    CHECK_OK(save(&settings, 20, (double)NAN, &err), &err);
    CHECK_OK(save(&settings, 30, (double)NAN, &err), &err);
    CHECK_OK(checkpoint_load(settings.folder, &loaded, &err), &err);
    CHECK_INT(loaded.step, 30);
    CHECK_INT(loaded.epoch, 3);
    CHECK_TEXT(loaded.graph, "abc");
    CHECK(isnan(loaded.score));
    CHECK_INT(loaded.items_count, 2);
    CHECK_INT(loaded.skipped_count, 0);
    CHECK_INT(tensor_i64(checkpoint_find(&loaded, "step"))[0], 30);
    CHECK(tensor_f32(checkpoint_find(&loaded, "w"))[999] == 1029);
    CHECK(!checkpoint_find(&loaded, "x"));
    checkpoint_release(&loaded);

    CHECK(!is_there("a/model.ckpt-10.index"));
    CHECK(!is_there("a/model.ckpt-10.manifest"));
    CHECK(!is_there("a/model.ckpt-10.data-00000-of-00001"));
    CHECK(is_there("a/model.ckpt-20.index"));
    struct str state = {0};
    CHECK_OK(file_read(folder_path("a/checkpoint"), 1000, &state, &err), &err);
    CHECK_TEXT(str_text(&state), "model_checkpoint_path: \"model.ckpt-30\"\n"
                                 "all_model_checkpoint_paths: \"model.ckpt-20\"\n"
                                 "all_model_checkpoint_paths: \"model.ckpt-30\"\n");
    str_release(&state);
}

/* Damage of any file of the newest: the one before is taken, and it is said. */
TEST(checkpoint_falls_back)
{
    static const char *const files[] = {"b/model.ckpt-2.index", "b/model.ckpt-2.manifest",
                                        "b/model.ckpt-2.data-00000-of-00001"};
    struct error err;
    struct checkpoint_settings settings = {.folder = folder_path("b"), .keep_latest = 5};
    CHECK_OK(save(&settings, 1, (double)NAN, &err), &err);
    for (int i = 0; i < ARRAY_LEN(files); i++) {
        CHECK_OK(save(&settings, 2, (double)NAN, &err), &err);
        if (i == 0)
            CHECK(!unlink(folder_path(files[i])));
        else
            flip(folder_path(files[i]), 2);
        struct checkpoint loaded;
        CHECK_OK(checkpoint_load(settings.folder, &loaded, &err), &err);
        CHECK_INT(loaded.step, 1);
        CHECK_INT(loaded.skipped_count, 1);
        CHECK(strstr(loaded.skipped[0].prefix, "b/model.ckpt-2"));
        CHECK(strlen(loaded.skipped[0].why) > 10);
        checkpoint_release(&loaded);
    }
    flip(folder_path("b/model.ckpt-1.data-00000-of-00001"), 7);
    struct checkpoint loaded;
    CHECK_FAILS(checkpoint_load(settings.folder, &loaded, &err), &err, DATA_LOSS);
}

/* The list is lost: the manifests are found all the same. */
TEST(checkpoint_is_found_without_the_list)
{
    struct error err;
    struct checkpoint loaded;
    struct checkpoint_settings settings = {.folder = folder_path("c"), .keep_latest = 5};
    CHECK_OK(save(&settings, 9, (double)NAN, &err), &err);
    CHECK_OK(save(&settings, 10, (double)NAN, &err), &err);
    CHECK(!unlink(folder_path("c/checkpoint")));
    CHECK_OK(checkpoint_load(settings.folder, &loaded, &err), &err);
    CHECK_INT(loaded.step, 10);
    checkpoint_release(&loaded);
}

TEST(checkpoint_fences_old_attempts)
{
    struct error err;
    struct checkpoint_settings old = {.folder = folder_path("d"), .epoch = 4, .keep_latest = 1};
    struct checkpoint_settings new = {.folder = old.folder, .epoch = 5, .keep_latest = 1};
    CHECK_OK(checkpoint_claim(&old, &err), &err);
    CHECK_OK(save(&old, 1, (double)NAN, &err), &err);
    CHECK_OK(checkpoint_claim(&new, &err), &err);
    CHECK_FAILS(save(&old, 2, (double)NAN, &err), &err, PRECONDITION);
    CHECK(strstr(err.text, "fenced"));
    CHECK_FAILS(checkpoint_claim(&old, &err), &err, PRECONDITION);
    CHECK(!is_there("d/model.ckpt-2.index"));
    CHECK_OK(save(&new, 2, (double)NAN, &err), &err);
    struct checkpoint loaded;
    CHECK_OK(checkpoint_load(new.folder, &loaded, &err), &err);
    CHECK_INT(loaded.step, 2);
    CHECK_INT(loaded.epoch, 5);
    checkpoint_release(&loaded);
}

TEST(checkpoint_keeps_the_best)
{
    struct error err;
    struct checkpoint_settings settings = {
        .folder = folder_path("e"), .keep_latest = 2, .keep_best = 1};
    const double scores[] = {0.5, 0.9, 0.7, 0.6, 0.8};
    for (int i = 0; i < 5; i++)
        CHECK_OK(save(&settings, i + 1, scores[i], &err), &err);
    CHECK(!is_there("e/model.ckpt-1.index"));
    CHECK(is_there("e/model.ckpt-2.index"));
    CHECK(!is_there("e/model.ckpt-3.index"));
    CHECK(is_there("e/model.ckpt-4.index"));
    CHECK(is_there("e/model.ckpt-5.index"));
    char *best = checkpoint_best(settings.folder, &err);
    CHECK_OK(best, &err);
    CHECK_TEXT(strrchr(best, '/'), "/model.ckpt-2");
    free(best);
    CHECK_OK(save(&settings, 6, 0.9, &err), &err); /* as good: the first stays the best */
    CHECK(is_there("e/model.ckpt-2.index"));
    best = checkpoint_best(settings.folder, &err);
    CHECK_OK(best, &err);
    CHECK_TEXT(strrchr(best, '/'), "/model.ckpt-2");
    free(best);
    CHECK_FAILS(checkpoint_best(folder_path("nowhere"), &err), &err, NOT_FOUND);
}

/* A file too large for its limit, as a full disk: an error, nothing new, nothing lost. */
TEST(checkpoint_survives_a_full_disk)
{
    struct error err;
    struct checkpoint_settings settings = {.folder = folder_path("f"), .keep_latest = 1};
    CHECK_OK(save(&settings, 1, (double)NAN, &err), &err);
    struct rlimit before, limit;
    CHECK(!getrlimit(RLIMIT_FSIZE, &before));
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    limit = (struct rlimit){.rlim_cur = 1000, .rlim_max = before.rlim_max};
    CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
    bool ok = save(&settings, 2, (double)NAN, &err);
    CHECK(!setrlimit(RLIMIT_FSIZE, &before));
    signal(SIGXFSZ, handler);
    CHECK(!ok);
    CHECK_INT(err.code, EXHAUSTED);
    CHECK(!is_there("f/.model.ckpt-2.0.tmp"));
    struct checkpoint loaded;
    CHECK_OK(checkpoint_load(settings.folder, &loaded, &err), &err);
    CHECK_INT(loaded.step, 1);
    CHECK_INT(loaded.skipped_count, 0);
    checkpoint_release(&loaded);
}

/* Killed at any moment while saving: the newest that is listed can always be read. */
TEST(checkpoint_survives_kills)
{
    struct error err;
    struct checkpoint_settings settings = {.folder = folder_path("g"), .keep_latest = 2};
    CHECK_OK(save(&settings, 1, (double)NAN, &err), &err);
    int64_t newest = 1;
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        if (child == 0) {
            for (int64_t step = newest + 1;; step++) {
                if (!save(&settings, step, (double)NAN, &err))
                    _exit(1);
            }
        }
        usleep((useconds_t)(500 + round * 400));
        CHECK(!kill(child, SIGKILL));
        CHECK(waitpid(child, NULL, 0) == child);
        struct checkpoint loaded;
        CHECK_OK(checkpoint_load(settings.folder, &loaded, &err), &err);
        CHECK(loaded.step >= newest);
        CHECK_INT(loaded.skipped_count, 0);
        newest = loaded.step;
        checkpoint_release(&loaded);
    }
    CHECK_OK(checkpoint_claim(&settings, &err), &err);
}

/* Files of steps that the list does not have, and files that were half written. */
static int strays(const char *name, int64_t first, int64_t last)
{
    int found = 0;
    DIR *folder = opendir(folder_path(name));
    CHECK(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *text = entry->d_name;
        long long step = 0;
        bool known =
            !strcmp(text, ".") || !strcmp(text, "..") || !strcmp(text, "lock") ||
            !strcmp(text, "epoch") || !strcmp(text, "checkpoint") ||
            (sscanf(text, "model.ckpt-%lld.", &step) == 1 && step >= first && step <= last);
        if (!known)
            print_message("  %s\n", text);
        found += !known;
    }
    closedir(folder);
    return found;
}

/* Killed at each place on the way, at the first checkpoint and at one for which another goes:
 * the next attempt finds one that is whole, and leaves nothing of the dead one. */
static void kill_everywhere(const char *start, int wanted)
{
    struct error err;
    int killed = 0, folders = 0;
    for (const char *const *name = failpoint_names; *name; name++) {
        for (int i = 0; strncmp(*name, "task.", 5) == 0 && i < 10; i++) {
            char folder[16], armed[100];
            int at = i / 2 + 1, before = i % 2 ? 2 : 0;
            snprintf(folder, sizeof(folder), "%s%d", start, folders++);
            snprintf(armed, sizeof(armed), "%s=kill@%d", *name, at);
            struct checkpoint_settings settings = {
                .folder = folder_path(folder), .epoch = 1, .keep_latest = 2};
            for (int step = 1; step <= before; step++)
                CHECK_OK(save(&settings, step, (double)NAN, &err), &err);
            pid_t child = fork();
            if (child == 0) {
                setenv(FAILPOINT_VARIABLE, armed, 1);
                _exit(!failpoint_arm() || !checkpoint_claim(&settings, &err) ||
                      !save(&settings, before + 1, (double)NAN, &err));
            }
            int status;
            CHECK(waitpid(child, &status, 0) == child);
            killed += WIFSIGNALED(status);
            CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : status == 0);
            settings.epoch = 2;
            CHECK_OK(checkpoint_claim(&settings, &err), &err);
            struct checkpoint loaded;
            int64_t newest = 0;
            if (checkpoint_load(settings.folder, &loaded, &err)) {
                newest = loaded.step;
                CHECK_INT(loaded.skipped_count, 0);
                checkpoint_release(&loaded);
            }
            CHECK(newest == before || newest == before + 1);
            CHECK_INT(strays(folder, newest - 1, newest), 0);
            CHECK_OK(save(&settings, newest + 1, (double)NAN, &err), &err);
            CHECK_INT(strays(folder, newest, newest + 1), 0);
        }
    }
    CHECK_INT(killed, wanted);
}

TEST(checkpoint_leaves_nothing_of_a_killed_attempt)
{
    kill_everywhere("k", 2 * 14);
}

TEST(checkpoint_in_shards_leaves_nothing_of_a_killed_attempt)
{
    sharded = true;
    kill_everywhere("s", 2 * 17); /* three more files get their names */
    sharded = false;
}

/* What several tasks wrote is one checkpoint, which is damaged if any of its files is. */
TEST(checkpoint_of_shards_is_one)
{
    static const char *const files[] = {
        "t/model.ckpt-2.data-00000-of-00003", "t/model.ckpt-2.data-00001-of-00003",
        "t/model.ckpt-2.data-00002-of-00003", "t/model.ckpt-2.index"};
    struct error err;
    struct checkpoint loaded;
    struct checkpoint_settings settings = {.folder = folder_path("t"), .keep_latest = 2};
    sharded = true;
    CHECK_OK(save(&settings, 1, (double)NAN, &err), &err);
    CHECK_OK(save(&settings, 2, (double)NAN, &err), &err);
    CHECK_OK(checkpoint_load(settings.folder, &loaded, &err), &err);
    CHECK_INT(loaded.step, 2);
    CHECK_INT(loaded.items_count, 3);
    const struct tensor *v = checkpoint_find(&loaded, "v");
    CHECK(v && v->count == 4);
    CHECK(tensor_f32(v)[0] == 2 && tensor_f32(v)[3] == 5);
    CHECK(tensor_f32(checkpoint_find(&loaded, "w"))[999] == 1001);
    checkpoint_release(&loaded);
    for (int i = 0; i < ARRAY_LEN(files); i++) {
        flip(folder_path(files[i]), 3);
        CHECK_OK(checkpoint_load(settings.folder, &loaded, &err), &err);
        CHECK_INT(loaded.step, 1);
        checkpoint_release(&loaded);
        CHECK_OK(save(&settings, 2, (double)NAN, &err), &err);
    }
    /* Written whole again, and then not kept: nothing of either is left. */
    sharded = false;
    CHECK_OK(save(&settings, 2, (double)NAN, &err), &err);
    CHECK_OK(save(&settings, 3, (double)NAN, &err), &err);
    CHECK_OK(save(&settings, 4, (double)NAN, &err), &err);
    CHECK_INT(strays("t", 3, 4), 0);
}

static bool write_no_shard(void *arg, const char *const *prefixes, struct error *err)
{
    if (*(bool *)arg)
        return fail(err, UNAVAILABLE, "the task is gone");
    char *index = alloc_printf("%s.index", prefixes[1]);
    bool ok = write_shards((float[4]){0}, prefixes, err) && unlink(index) == 0;
    free(index);
    return ok;
}

/* One that did not come, and one that is said to be there and is not: nothing is published. */
TEST(checkpoint_waits_for_every_shard)
{
    struct error err;
    struct checkpoint_settings settings = {.folder = folder_path("u"), .keep_latest = 2};
    CHECK_OK(save(&settings, 1, (double)NAN, &err), &err);
    for (int i = 0; i < 2; i++) {
        bool gone = i == 0;
        const struct checkpoint_shards shards = {
            .count = 2, .write = write_no_shard, .arg = &gone};
        struct checkpoint_point point = {.step = 2, .score = (double)NAN, .graph = ""};
        CHECK(!checkpoint_save(&settings, &point, NULL, 0, &shards, &err));
        CHECK_INT(err.code, gone ? UNAVAILABLE : INVALID);
        CHECK_INT(strays("u", 1, 1), 0);
    }
}
