/* checkpoint.c - claims a checkpoint folder and publishes in it. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/str.h"
#include "runtime/checkpoint_internal.h"
#include "runtime/io/bundle.h"
#include "runtime/io/file.h"

#define BUILD_START ".model.ckpt-" /* folders in which checkpoints are built */
#define BUILD_END ".tmp"

char *checkpoint_prefix(const char *folder, int64_t step)
{
    return alloc_printf("%s/model.ckpt-%lld", folder, (long long)step);
}

/* --- the lock and the epoch --- */

static bool folder_make(const char *folder, struct error *err)
{
    if (mkdir(folder, 0777) == 0)
        return file_sync_folder(folder, err);
    return errno == EEXIST || file_error(err, "create folder", folder);
}

/* Returns a descriptor that holds the folder's lock until it is closed; -1 on failure. */
static int folder_lock(const char *folder, struct error *err)
{
    char *path = alloc_printf("%s/lock", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int locked = -1;
    while (fd >= 0 && (locked = flock(fd, LOCK_EX)) < 0 && errno == EINTR)
        ;
    if (locked < 0) {
        file_error(err, "lock", path);
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    free(path);
    return fd;
}

static bool epoch_read(const char *folder, int64_t *epoch, struct error *err)
{
    struct str bytes = {0};
    char *path = alloc_printf("%s/epoch", folder), *end;
    bool ok = file_read(path, 64, &bytes, err);
    *epoch = 0;
    if (!ok && err->code == NOT_FOUND) {
        ok = true;
    } else if (ok) {
        errno = 0;
        *epoch = strtoll(str_text(&bytes), &end, 10);
        if (errno || end == str_text(&bytes) || *epoch < 0)
            ok = fail(err, DATA_LOSS, "%s does not hold a number", path);
    }
    free(path);
    str_release(&bytes);
    return ok;
}

/* Fails if a newer attempt has claimed the folder; the lock is held. */
static bool epoch_check(const struct checkpoint_settings *settings, int64_t *claimed,
                        struct error *err)
{
    if (!epoch_read(settings->folder, claimed, err))
        return false;
    if (*claimed <= settings->epoch)
        return true;
    return fail(
        err, PRECONDITION,
        "fenced: attempt with epoch %lld may not publish in %s, which epoch %lld has claimed",
        (long long)settings->epoch, settings->folder, (long long)*claimed);
}

/* --- folders in which checkpoints are built --- */

static void build_remove(const char *build)
{
    DIR *folder = opendir(build);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char *path = alloc_printf("%s/%s", build, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
        free(path);
    }
    if (folder)
        closedir(folder);
    rmdir(build);
}

/* Manifest and index first: without them its data is none, however many files it is in. */
static void files_remove(const char *prefix)
{
    for (int i = 1; i >= 0; i--) {
        char *path = checkpoint_part(prefix, 0, i);
        unlink(path);
        free(path);
    }
    char *folder_path = file_folder(prefix);
    char *start = alloc_printf("%s.data-", prefix + strlen(folder_path) + 1);
    DIR *folder = opendir(folder_path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (strncmp(entry->d_name, start, strlen(start)) == 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder)
        closedir(folder);
    free(start);
    free(folder_path);
}

/* A publication of `step` was broken off: the files that were moved in but are not listed go,
 * and those that are listed no more. */
static void publish_undo(const char *folder, int64_t step)
{
    struct checkpoint_state state, there = {0};
    struct error ignored;
    if (!checkpoint_state_read(folder, &state, &ignored))
        return;
    checkpoint_state_search(folder, &there);
    checkpoint_state_add(&there, step); /* its manifest may be missing */
    for (int i = 0; i < there.steps_count; i++) {
        char *prefix = checkpoint_prefix(folder, there.steps[i]);
        if (there.steps[i] <= step && !checkpoint_state_has(&state, there.steps[i]))
            files_remove(prefix);
        free(prefix);
    }
    checkpoint_state_release(&there);
    checkpoint_state_release(&state);
}

/* Of a file that was being written when its writer died: see file_write(). */
static bool is_half_written(const char *name)
{
    static const char *const names[] = {"checkpoint.tmp-", "best.tmp-", "epoch.tmp-", ".seen-"};
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

/*
 * Attempts that died while saving left the folders in which they built, whose names tell the
 * steps; the epoch file says that they are over, and the lock that nobody else is at work.
 */
static void leftovers_remove(const char *folder_path)
{
    DIR *folder = opendir(folder_path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        size_t size = strlen(entry->d_name), start = strlen(BUILD_START);
        size_t end = strlen(BUILD_END);
        char *path = alloc_printf("%s/%s", folder_path, entry->d_name);
        if (is_half_written(entry->d_name)) {
            unlink(path);
        } else if (size > start + end && !strncmp(entry->d_name, BUILD_START, start) &&
                   !strcmp(entry->d_name + size - end, BUILD_END)) {
            publish_undo(folder_path, strtoll(entry->d_name + start, NULL, 10));
            build_remove(path);
        }
        free(path);
    }
    if (folder)
        closedir(folder);
}

bool checkpoint_claim(const struct checkpoint_settings *settings, struct error *err)
{
    if (!folder_make(settings->folder, err))
        return false;
    int lock = folder_lock(settings->folder, err);
    if (lock < 0)
        return false;
    int64_t claimed;
    bool ok = epoch_check(settings, &claimed, err);
    if (ok && settings->epoch > claimed) {
        char *text = alloc_printf("%lld\n", (long long)settings->epoch);
        char *path = alloc_printf("%s/epoch", settings->folder);
        ok = file_write(path, text, strlen(text), err);
        free(path);
        free(text);
    }
    failpoint("task.claimed");
    if (ok)
        leftovers_remove(settings->folder);
    close(lock);
    return ok;
}

/* --- saving --- */

/* As TensorFlow saves a partitioned variable: its Saver reads it as one. */
static bool item_write(struct bundle_writer *writer, const struct checkpoint_item *item,
                       struct error *err)
{
    if (!item->whole)
        return bundle_writer_add(writer, item->name, &item->tensor, err);
    struct bundle_slice slice = {.rank = item->whole->rank};
    for (int d = 0; d < slice.rank; d++)
        slice.length[d] = item->tensor.shape.dims[d];
    slice.start[0] = item->first;
    return bundle_writer_add_slice(writer, item->name, item->whole, &slice, &item->tensor, err);
}

static bool items_write(const char *prefix, const struct checkpoint_item *items,
                        int items_count, struct error *err)
{
    struct bundle_writer *writer = bundle_writer_open(prefix, err);
    if (!writer)
        return false;
    for (int i = 0; i < items_count; i++) {
        if (!item_write(writer, &items[i], err)) {
            bundle_writer_discard(writer);
            return false;
        }
    }
    bool ok = bundle_writer_finish(writer, err);
    failpoint("task.ckpt_data");
    return ok;
}

/* Those of others and, as the last one, the items; then one checkpoint of them all. */
static bool shards_write(const char *prefix, const struct checkpoint_item *items,
                         int items_count, const struct checkpoint_shards *shards,
                         struct error *err)
{
    int count = shards->count + 1;
    char *folder = file_folder(prefix);
    char **prefixes = alloc_array((size_t)count, sizeof(*prefixes));
    for (int i = 0; i < count; i++)
        prefixes[i] = alloc_printf("%s/part-%05d-of-%05d", folder, i, count);
    const char *const *parts = (const char *const *)prefixes;
    bool ok = shards->write(shards->arg, parts, err) &&
              items_write(prefixes[shards->count], items, items_count, err);
    ok = ok && bundle_merge(parts, count, prefix, false, err);
    for (int i = 0; i < count; i++)
        free(prefixes[i]);
    free(prefixes);
    free(folder);
    return ok;
}

static bool build_write(const char *prefix, struct checkpoint_manifest *manifest,
                        const struct checkpoint_item *items, int items_count,
                        const struct checkpoint_shards *shards, struct error *err)
{
    bool ok = shards ? shards_write(prefix, items, items_count, shards, err)
                     : items_write(prefix, items, items_count, err);
    ok = ok && checkpoint_manifest_write(prefix, manifest, err);
    failpoint("task.ckpt_manifest");
    return ok;
}

static bool files_move(const char *from_prefix, const char *to_prefix, int shards,
                       struct error *err)
{
    bool ok = true;
    for (int i = 0; ok && i < shards + 2; i++) {
        char *from = checkpoint_part(from_prefix, shards, i);
        char *to = checkpoint_part(to_prefix, shards, i);
        failpoint("task.ckpt_before_rename");
        ok = file_rename(from, to, err);
        free(from);
        free(to);
    }
    return ok && file_sync_folder(to_prefix, err);
}

/* How many of the listed checkpoints have a higher score than `index`, or the same before it.
 */
static int better_count(const double *scores, int count, int index)
{
    int better = 0;
    for (int i = 0; i < count; i++)
        better += scores[i] > scores[index] || (i < index && scores[i] == scores[index]);
    return better;
}

/* --- the best one --- */

static bool best_write(const char *folder, int64_t step, struct error *err)
{
    char *path = alloc_printf("%s/best", folder);
    char *text = alloc_printf("model_checkpoint_path: \"model.ckpt-%lld\"\n", (long long)step);
    bool ok = file_write(path, text, strlen(text), err);
    free(text);
    free(path);
    return ok;
}

char *checkpoint_best(const char *folder, struct error *err)
{
    static const char start[] = "model_checkpoint_path: \"";
    struct str text = {0};
    char *path = alloc_printf("%s/best", folder), *prefix = NULL;
    int64_t step;
    if (file_read(path, 4096, &text, err)) {
        const char *name = str_text(&text) + strlen(start);
        bool ok = text.size > strlen(start) &&
                  !strncmp(str_text(&text), start, strlen(start)) &&
                  checkpoint_state_step(name, strcspn(name, "\""), &step);
        if (ok)
            prefix = checkpoint_prefix(folder, step);
        else
            fail(err, DATA_LOSS, "%s names no checkpoint", path);
    }
    str_release(&text);
    free(path);
    return prefix;
}

/*
 * Takes out of `state` what need not be kept, and lists it in `dropped`.  The newest is always
 * kept.  Of what cannot be read no score is known: it is not among the best.  Returns the step
 * with the highest score, the first of several; -1: none has one.
 */
static int64_t state_prune(const struct checkpoint_settings *settings,
                           struct checkpoint_state *state, struct checkpoint_state *dropped)
{
    int count = state->steps_count;
    int keep_latest = settings->keep_latest > 1 ? settings->keep_latest : 1;
    double *scores = alloc_array((size_t)count, sizeof(*scores));
    for (int i = 0; i < count; i++) {
        struct checkpoint_manifest manifest;
        struct error ignored;
        char *prefix = checkpoint_prefix(settings->folder, state->steps[i]);
        scores[i] = NAN;
        if (settings->keep_best && checkpoint_manifest_read(prefix, &manifest, &ignored)) {
            scores[i] = manifest.score;
            checkpoint_manifest_release(&manifest);
        }
        free(prefix);
    }
    struct checkpoint_state kept = {0};
    int64_t best = -1;
    for (int i = 0; i < count; i++) {
        if (best < 0 && !isnan(scores[i]) && !better_count(scores, count, i))
            best = state->steps[i];
        bool is_best =
            !isnan(scores[i]) && better_count(scores, count, i) < settings->keep_best;
        bool keep = i >= count - keep_latest || is_best;
        checkpoint_state_add(keep ? &kept : dropped, state->steps[i]);
    }
    free(scores);
    checkpoint_state_release(state);
    *state = kept;
    return best;
}

/* After a failure: files that were moved in but are not listed. */
static void unlisted_remove(const char *folder, const char *prefix, int64_t step)
{
    struct checkpoint_state state;
    struct error ignored;
    if (!checkpoint_state_read(folder, &state, &ignored))
        return;
    if (!checkpoint_state_has(&state, step))
        files_remove(prefix);
    checkpoint_state_release(&state);
}

/* Moves a finished build in and lists it; the lock is held. */
static bool publish(const struct checkpoint_settings *settings, const char *build_prefix,
                    int64_t step, int shards, struct error *err)
{
    struct checkpoint_state state = {0}, dropped = {0};
    char *prefix = checkpoint_prefix(settings->folder, step);
    int64_t claimed;
    bool ok = epoch_check(settings, &claimed, err) &&
              checkpoint_state_read(settings->folder, &state, err);
    if (ok) {
        ok = files_move(build_prefix, prefix, shards, err);
        if (ok) {
            checkpoint_state_add(&state, step);
            int64_t best = state_prune(settings, &state, &dropped);
            failpoint("task.ckpt_before_state");
            ok = checkpoint_state_write(settings->folder, &state, err) &&
                 (best < 0 || best_write(settings->folder, best, err));
        }
        if (!ok)
            unlisted_remove(settings->folder, prefix, step);
    }
    failpoint("task.ckpt_after_state");
    for (int i = 0; ok && i < dropped.steps_count; i++) {
        char *old = checkpoint_prefix(settings->folder, dropped.steps[i]);
        files_remove(old);
        free(old);
    }
    checkpoint_state_release(&state);
    checkpoint_state_release(&dropped);
    free(prefix);
    return ok;
}

bool checkpoint_save(const struct checkpoint_settings *settings,
                     const struct checkpoint_point *point, const struct checkpoint_item *items,
                     int items_count, const struct checkpoint_shards *shards, struct error *err)
{
    assert(point->step >= 0);
    assert(!shards || shards->count <= LIMIT_JOB_TASKS);
    struct checkpoint_manifest manifest = {.step = point->step,
                                           .epoch = settings->epoch,
                                           .score = point->score,
                                           .graph = (char *)point->graph,
                                           .model = (char *)point->model,
                                           .shards = shards ? shards->count + 1 : 1};
    if (!folder_make(settings->folder, err))
        return false;
    char *build = alloc_printf("%s/" BUILD_START "%lld.%lld" BUILD_END, settings->folder,
                               (long long)point->step, (long long)settings->epoch);
    char *prefix = checkpoint_prefix(build, point->step);
    build_remove(build);
    bool ok = folder_make(build, err);
    failpoint("task.ckpt_open");
    ok = ok && build_write(prefix, &manifest, items, items_count, shards, err);
    if (ok) {
        int lock = folder_lock(settings->folder, err);
        ok = lock >= 0 && publish(settings, prefix, point->step, manifest.shards, err);
        if (lock >= 0)
            close(lock);
    }
    failpoint("task.ckpt_published");
    build_remove(build);
    free(manifest.bytes);
    free(manifest.crc);
    free(prefix);
    free(build);
    return ok || error_prefix(err, "checkpoint of step %lld: ", (long long)point->step);
}

/* --- what was loaded --- */

const struct tensor *checkpoint_find(const struct checkpoint *checkpoint, const char *name)
{
    int low = 0, high = checkpoint->items_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strcmp(checkpoint->items[middle].name, name);
        if (!order)
            return &checkpoint->items[middle].tensor;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void checkpoint_release(struct checkpoint *checkpoint)
{
    for (int i = 0; i < checkpoint->items_count; i++) {
        free((char *)checkpoint->items[i].name);
        tensor_release(&checkpoint->items[i].tensor);
    }
    for (int i = 0; i < checkpoint->skipped_count; i++) {
        free(checkpoint->skipped[i].prefix);
        free(checkpoint->skipped[i].why);
    }
    free(checkpoint->items);
    free(checkpoint->skipped);
    free(checkpoint->graph);
    free(checkpoint->model);
    free(checkpoint->prefix);
    *checkpoint = (struct checkpoint){0};
}
