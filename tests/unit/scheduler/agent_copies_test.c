/* agent_copies_test.c - whether the server's folder is seen, copies of datasets, what is
 * mirrored. */

#include <fcntl.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/error.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/datasets.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/folders.h"
#include "scheduler/agent/mirror.h"
#include "tests/unit/folder.h"

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

TEST(folders_are_shared_where_the_same_id_is)
{
    struct error err;
    char id[FOLDERS_ID_TEXT], again[FOLDERS_ID_TEXT];
    folder_put_text("seen/jobs/1", "x", "");
    CHECK_OK(folders_id(folder_path("seen"), id, &err), &err);
    CHECK_INT(strlen(id), 32);
    CHECK_OK(folders_id(folder_path("seen"), again, &err), &err);
    CHECK_TEXT(id, again);
    struct agent_start_task start = {.job_folder = folder_path("seen/jobs/1"),
                                     .server_folder_id = id};
    CHECK(folders_are_shared(&start));
    /* Another server's folder at the same path, or none. */
    start.server_folder_id = "0123456789abcdef0123456789abcdef";
    CHECK(!folders_are_shared(&start));
    start.server_folder_id = id;
    start.job_folder = folder_path("elsewhere/jobs/1");
    CHECK(!folders_are_shared(&start));
    start.server_folder_id = ""; /* a server of before */
    CHECK(folders_are_shared(&start));
}

TEST(folders_of_a_copy_are_like_the_server_s)
{
    json_t *start = json_pack("{s:i, s:s, s:s}", "job_id", 7, "job_folder", "/yard/jobs/7",
                              "dataset_folder", "/yard/datasets/mnist");
    char *yard = folders_yard(start);
    CHECK_TEXT(yard, "/yard");
    free(yard);
    CHECK(!folders_are_own(start));
    folders_make_own(start, "/agent/attempts/9-worker-0");
    CHECK(folders_are_own(start));
    CHECK_TEXT(files_text(start, "job_folder"), "/agent/attempts/9-worker-0/jobs/7");
    CHECK_TEXT(files_text(start, "dataset"), "mnist");
    CHECK_TEXT(files_text(start, "dataset_folder"), "");
    yard = folders_yard(start);
    CHECK_TEXT(yard, "");
    free(yard);
    json_decref(start);
}

TEST(folders_init_job_reads_both_forms)
{
    static const struct {
        const char *spec;
        int64_t job;
    } cases[] = {{"{\"train\": {\"init\": {\"job\": 12}}}", 12},
                 {"{\"train\": {\"init\": {\"job\": \"12\"}}}", 12},
                 {"{\"train\": {\"init\": {\"file\": \"/w\"}}}", 0},
                 {"{\"train\": 1}", 0},
                 {"[]", 0}};
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *spec = json_loads(cases[i].spec, 0, NULL);
        CHECK_INT(folders_init_job(spec), cases[i].job);
        json_decref(spec);
    }
}

/* --- datasets --- */

/* The list of a dataset of one file of so many bytes. */
static char *list_of(int64_t bytes)
{
    return alloc_printf("{\"files\": [{\"name\": \"x\", \"bytes\": %lld}]}", (long long)bytes);
}

/* Brings a copy as bring.c does; its place. */
static char *bring_one(struct datasets *datasets, const char *name, int64_t bytes)
{
    struct error err;
    char *list = list_of(bytes);
    char *place = datasets_place(datasets, name, list, strlen(list));
    char *part = datasets_part(place);
    CHECK_INT(datasets_take(datasets, place, bytes, name, &err), DATASETS_MINE);
    CHECK_OK(files_write(part, "dataset.json", list, &err), &err);
    CHECK_OK(datasets_publish(datasets, place, name, &err), &err);
    CHECK(!exists(part));
    CHECK(exists(place));
    free(part);
    free(list);
    usleep(20000); /* the next one is used later */
    return place;
}

TEST(datasets_are_kept_once_and_by_what_is_in_them)
{
    struct error err;
    struct datasets *datasets =
        datasets_new(folder_path("once"), folder_path("once/attempts"), 0);
    char *place = bring_one(datasets, "mnist", 100);
    CHECK_INT(datasets_take(datasets, place, 100, "a", &err), DATASETS_READY);
    char *list = list_of(101);
    char *other = datasets_place(datasets, "mnist", list, strlen(list));
    CHECK(strcmp(place, other) != 0); /* of the same name, with another list */
    CHECK_INT(datasets_take(datasets, other, 101, "a", &err), DATASETS_MINE);
    CHECK_INT(datasets_take(datasets, other, 101, "b", &err), DATASETS_OTHERS);
    datasets_release(datasets, "a"); /* its task was killed */
    CHECK_INT(datasets_take(datasets, other, 101, "b", &err), DATASETS_MINE);
    free(list);
    free(other);
    free(place);
    datasets_free(datasets);
}

TEST(datasets_make_room_by_what_was_not_used_for_longest)
{
    struct error err;
    struct datasets *datasets =
        datasets_new(folder_path("room"), folder_path("room/attempts"), 300);
    char *first = bring_one(datasets, "first", 100);
    char *second = bring_one(datasets, "second", 100);
    char *third = bring_one(datasets, "third", 100);
    CHECK_INT(datasets_take(datasets, first, 100, "a", &err), DATASETS_READY); /* used now */
    /* A running task says that it uses the third. */
    char *start = alloc_printf("{\"dataset_folder\": \"%s\"}", third);
    folder_put_text("room/attempts/1-worker-0", "start.json", start);
    char *fourth = bring_one(datasets, "fourth", 50);
    CHECK(!exists(second));
    CHECK(exists(first) && exists(third));
    char *fifth = bring_one(datasets, "fifth", 200); /* all that may go has to */
    CHECK(!exists(first) && !exists(fourth) && exists(third));

    char *list = list_of(201);
    char *place = datasets_place(datasets, "huge", list, strlen(list));
    CHECK_INT(datasets_take(datasets, place, 201, "b", &err), DATASETS_FULL);
    CHECK_TEXT(err.text, "the dataset has 201 bytes, and this node keeps 300 of datasets "
                         "(--dataset-bytes), of which running tasks use 100");
    CHECK_INT(err.code, EXHAUSTED);
    free(place);
    free(list);
    free(start);
    free(fifth);
    free(fourth);
    free(third);
    free(second);
    free(first);
    datasets_free(datasets);
}

/* --- names --- */

TEST(mirror_wants_what_is_of_checkpoints)
{
    static const char *const wanted[] = {
        "checkpoint", "best",  "model.ckpt-5.index", "deep/er/state.pt", "epoch/x",
        "locks",      "a.tmpl"};
    static const char *const left[] = {
        "epoch", "lock",    ".hidden",           "deep/.x",
        "x.tmp", "x.tmp/y", "checkpoint.tmp-12", "d/model.ckpt.tmp"};
    for (int i = 0; i < ARRAY_LEN(wanted); i++)
        CHECK(mirror_wants(wanted[i]));
    for (int i = 0; i < ARRAY_LEN(left); i++)
        CHECK(!mirror_wants(left[i]));
}
