/*
 * datasets_power_test.c - the power is cut while an agent brings a dataset: what has its name
 * is whole, as nobody looks into it again.
 */
/* Faults of docs/reliability.md: F13. */

#include "base/error.h"
#include "base/limits.h"
#include "scheduler/agent/datasets.h"
#include "scheduler/agent/fetch.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/link.h"
#include "tests/unit/folder.h"
#include "tests/unit/power.h"
#include "tests/unit/test.h"

#define LIST "{\"files\": [{\"name\": \"one\"}, {\"name\": \"in/two\"}]}"

static const struct {
    const char *name;
    const char *bytes;
} files[] = {{"one", "first of both"}, {"in/two", "and the second"}};

static char *place;
static int whole; /* disks with the copy */

/* --- the server: a piece is a whole file --- */

bool link_is_final(enum error_code code)
{
    (void)code;
    return true;
}

bool link_fetch(struct link *link, const struct agent_task_ref *task,
                const struct agent_fetch_what *what, int64_t offset, struct arena *arena,
                struct agent_fetch_response *piece, struct error *err)
{
    (void)link, (void)task, (void)arena;
    CHECK_INT(offset, 0);
    for (int i = 0; i < ARRAY_LEN(files); i++) {
        if (strcmp(files[i].name, what->path) != 0)
            continue;
        *piece = (struct agent_fetch_response){.data = files[i].bytes,
                                               .data_size = strlen(files[i].bytes)};
        return true;
    }
    return fail(err, NOT_FOUND, "no file %s", what->path);
}

/* --- the disk that is left --- */

/* Whether a file has these bytes: 1, has not all of them: 0, is not there: -1. */
static int has(const char *folder, const char *name, const char *bytes)
{
    char *path = alloc_printf("%s/%s", folder, name), found[200];
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(found, 1, sizeof(found), file) : 0;
    if (file)
        fclose(file);
    free(path);
    return !file ? -1 : got == strlen(bytes) && memcmp(found, bytes, got) == 0;
}

static void look(const char *root, const char *image)
{
    char *copy = alloc_printf("%s%s", image, place + strlen(root));
    char *part = datasets_part(copy);
    bool named = access(copy, F_OK) == 0;
    whole += named;
    CHECK(!named || has(copy, "dataset.json", LIST) == 1);
    for (int i = 0; i < ARRAY_LEN(files); i++) {
        CHECK(!named || has(copy, files[i].name, files[i].bytes) == 1);
        CHECK(has(part, files[i].name, files[i].bytes) != 0); /* it is not fetched again */
    }
    free(copy);
    free(part);
}

TEST(a_copy_with_its_name_is_whole_when_the_power_is_cut)
{
    struct error err;
    char root[100];
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    snprintf(root, sizeof(root), "%s", folder_path("agent"));
    CHECK_INT(mkdir(root, 0777), 0);
    power_record(root);
    struct datasets *datasets = datasets_new(root, folder_path("attempts"), 0);
    struct fetch *fetch = fetch_new();
    place = datasets_place(datasets, "both", LIST, strlen(LIST));
    char *part = datasets_part(place);
    CHECK_INT(datasets_take(datasets, place, 27, fetch, &err), DATASETS_MINE);
    CHECK_OK(files_write(part, "dataset.json", LIST, &err), &err);
    for (int i = 0; i < ARRAY_LEN(files); i++) {
        char *path = alloc_printf("%s/%s", part, files[i].name);
        const struct fetch_file file = {
            .what = {.kind = AGENT_FETCH_DATASET, .sha256 = "", .path = files[i].name},
            .path = path,
            .size = (int64_t)strlen(files[i].bytes),
            .kept = true};
        CHECK_INT(fetch_piece(fetch, &file, NULL, NULL, &err), FETCH_DONE);
        free(path);
    }
    CHECK_OK(datasets_publish(datasets, place, fetch, &err), &err);
    int calls = power_stop(), images = 0;
    CHECK(calls > 10);
    for (int cut = 0; cut <= calls; cut++) {
        for (int way = 0; way < POWER_WAYS; way++) {
            for (int draw = 0; draw < (way >= POWER_FIRST ? 8 : 1); draw++) {
                const char *image = folder_path("image");
                CHECK_INT(mkdir(image, 0777), 0);
                power_cut(root, cut, (enum power_way)way, (uint64_t)images++, image);
                look(root, image);
                folder_remove_below(image);
            }
        }
    }
    CHECK(whole > 0 && whole < images);
    fetch_free(fetch);
    datasets_free(datasets);
    free(place);
    free(part);
}
