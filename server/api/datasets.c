/* datasets.c - datasets: what there is, sent piece by piece, looked into, removed. */

#include <dirent.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "db/jobs.h"
#include "runtime/spec/spec.h"
#include "runtime/spec/spec_read.h"
#include "scheduler/agent/files.h"
#include "server/api/api.h"
#include "server/body.h"
#include "server/dataset.h"
#include "server/download.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/upload.h"

#define DATASET_FILES_SHOWN 10000
#define PUBLISHING_MAX 2 /* at a time: each reads all of a dataset */

static const char *folder_of(const struct request *req, const char *name)
{
    return arena_printf(req->arena, "%s/datasets/%s", req->services->folder, name);
}

static bool check_name(const struct request *req, struct error *err)
{
    return (spec_is_name(req->params[0]) && req->params[0][0] != '.') ||
           error_at(
               err, "/name", INVALID,
               "'%.100s' cannot name a dataset: 1 to %d of A-Z a-z 0-9 . _ -, no '.' first",
               req->params[0], LIMIT_NAME_BYTES);
}

static struct upload upload_of(const struct request *req)
{
    return (struct upload){.folder = req->services->folder,
                           .name = req->params[0],
                           .user = req->user.user,
                           .is_admin = req->user.role == ROLE_ADMIN,
                           .bytes_max = req->services->dataset_bytes};
}

/* --- as JSON --- */

static json_t *columns_json(const json_t *columns)
{
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(columns); i++) {
        json_t *column = json_deep_copy(json_array_get(columns, i));
        json_object_del(column, "vocabulary"); /* may be long: it is in dataset.json */
        json_array_append_new(list, column);
    }
    return list;
}

static json_t *ready_json(const char *name, const struct dataset_files *files)
{
    int64_t size = 0;
    for (int i = 0; i < files->files_count; i++)
        size += files->files[i].bytes;
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:o, s:o, s:o}", "name", name,
                     "state", "ready", "format", files->format, "train",
                     (json_int_t)files->train_count, "validation",
                     (json_int_t)files->validation_count, "test", (json_int_t)files->test_count,
                     "size", (json_int_t)size, "files_count", files->files_count, "added_by",
                     *files->added_by ? json_string(files->added_by) : json_null(), "added_at",
                     job_time(files->added_us), "columns", columns_json(files->columns));
}

static json_t *files_json(const struct dataset_files *files)
{
    json_t *list = json_array();
    for (int i = 0; i < files->files_count && i < DATASET_FILES_SHOWN; i++)
        json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "path", files->files[i].name,
                                              "size", (json_int_t)files->files[i].bytes,
                                              "sha256", files->files[i].sha256));
    return list;
}

/* One under way, with its files when `whole`. */
static json_t *uploading_json(const char *name, json_t *upload, bool whole)
{
    json_t *list = json_object_get(upload, "files");
    json_int_t size = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        size += json_integer_value(json_object_get(json_array_get(list, i), "size"));
    json_t *json = json_pack("{s:s, s:s, s:I, s:i, s:s, s:o}", "name", name, "state",
                             "uploading", "size", size, "files_count",
                             (int)json_array_size(list), "added_by", files_text(upload, "user"),
                             "added_at", job_time(files_int(upload, "started_us")));
    if (whole)
        json_object_set(json, "files", list);
    json_decref(upload);
    return json;
}

/* --- what there is --- */

/* What an entry of DIR/datasets is; NULL: nothing of ours. */
static json_t *entry_json(struct request *req, const char *entry)
{
    static const char suffix[] = ".upload";
    struct error why;
    size_t size = strlen(entry);
    if (entry[0] != '.') {
        struct dataset_files files;
        if (!spec_is_name(entry))
            return NULL;
        json_t *json = dataset_files_read(folder_of(req, entry), &files, &why)
                           ? ready_json(entry, &files)
                       : why.code == DATA_LOSS
                           ? json_pack("{s:s, s:s, s:s}", "name", entry, "state", "damaged",
                                       "error", "its dataset.json cannot be read")
                           : NULL;
        dataset_files_release(&files);
        return json;
    }
    if (size <= sizeof(suffix) || strcmp(entry + size - (sizeof(suffix) - 1), suffix) != 0)
        return NULL;
    const char *name = arena_text_n(req->arena, entry + 1, size - sizeof(suffix));
    json_t *upload = upload_show(req->services->folder, name, &why);
    return upload ? uploading_json(name, upload, false) : NULL;
}

/* GET /api/v1/datasets: by name; also those that are being sent. */
static bool datasets_list(struct request *req, struct error *err)
{
    struct dirent **entries = NULL;
    int count = scandir(folder_of(req, ""), &entries, NULL, alphasort);
    json_t *items = json_array();
    for (int i = 0; i < count; i++) {
        json_t *json = entry_json(req, entries[i]->d_name);
        if (json)
            json_array_append_new(items, json);
        free(entries[i]);
    }
    free(entries);
    return reply_json(req, 200, json_pack("{s:o}", "items", items), err);
}

/* GET /api/v1/datasets/{name}: with its files, as they are or as far as they have come. */
static bool datasets_show(struct request *req, struct error *err)
{
    struct dataset_files files;
    const char *name = req->params[0];
    if (!check_name(req, err))
        return false;
    if (dataset_files_read(folder_of(req, name), &files, err)) {
        json_t *json = ready_json(name, &files);
        json_object_set_new(json, "files", files_json(&files));
        dataset_files_release(&files);
        return reply_json(req, 200, json, err);
    }
    dataset_files_release(&files);
    if (err->code == DATA_LOSS)
        return fail(err, DATA_LOSS, "dataset '%s': its dataset.json cannot be read", name);
    json_t *upload = upload_show(req->services->folder, name, err);
    return upload && reply_json(req, 200, uploading_json(name, upload, true), err);
}

/* GET /api/v1/datasets/{name}/files?path=train.csv: always as a download. */
static bool datasets_content(struct request *req, struct error *err)
{
    const char *path = request_query(req, "path");
    struct stat info;
    if (!check_name(req, err))
        return false;
    if (!path)
        return error_at(err, "/path", INVALID,
                        "path is missing: a file's, as the dataset has it");
    int file = path_is_below(path) && path[0] != '.' && !strstr(path, "/.")
                   ? files_open_below(folder_of(req, req->params[0]), path)
                   : -1;
    if (file >= 0 && (fstat(file, &info) || !S_ISREG(info.st_mode))) {
        close(file);
        file = -1;
    }
    return file >= 0 ? download_reply(req, file, err)
                     : fail(err, NOT_FOUND, "dataset '%s' has no file '%.200s'", req->params[0],
                            path);
}

/* --- what comes and goes --- */

/* PUT /api/v1/datasets/{name}/files?path=train.csv&offset=8388608: the body goes there. */
static bool datasets_piece(struct request *req, struct error *err)
{
    const struct upload upload = upload_of(req);
    const char *path = request_query(req, "path");
    int64_t offset, received;
    if (!check_name(req, err) ||
        !request_query_int(req, "offset", 0, INT64_MAX / 2, 0, &offset, err))
        return false;
    if (!path)
        return error_at(err, "/path", INVALID, "path is missing: the file's in the dataset");
    return upload_piece(&upload, path, offset, req->body, req->body_size, &received, err) &&
           reply_json(req, 200,
                      json_pack("{s:s, s:I}", "path", path, "size", (json_int_t)received), err);
}

/* The body's {"files": {PATH: SHA-256}}; `*files` is NULL without. */
static bool read_expected(json_t *body, json_t **files, struct error *err)
{
    const char *field;
    json_t *value;
    *files = json_object_get(body, "files");
    json_object_foreach(body, field, value)
    {
        if (strcmp(field, "files") != 0)
            return error_at(err, "/", INVALID, "unknown field '%.80s'; there is: files", field);
    }
    return !*files || json_is_object(*files) ||
           error_at(err, "/files", INVALID, "files must be an object of names and SHA-256");
}

/* POST /api/v1/datasets/{name}:publish {files}: what has come becomes the dataset. */
static bool datasets_publish(struct request *req, struct error *err)
{
    static atomic_int publishing;
    const struct upload upload = upload_of(req);
    struct spec_object object;
    struct dataset_files files = {0};
    json_t *expected, *body = check_name(req, err) ? body_object(req, &object, err) : NULL;
    if (!body || !read_expected(body, &expected, err)) {
        json_decref(body);
        return false;
    }
    bool ok = atomic_fetch_add(&publishing, 1) < PUBLISHING_MAX ||
              fail(err, UNAVAILABLE,
                   "%d datasets are being looked into already: try again in a moment",
                   PUBLISHING_MAX);
    ok = ok && upload_publish(&upload, expected, &files, err);
    atomic_fetch_sub(&publishing, 1);
    ok = ok && reply_json(req, 201, ready_json(req->params[0], &files), err);
    dataset_files_release(&files);
    json_decref(body);
    return ok;
}

/* What was published: by who sent it, or an admin, while no job needs it. */
static bool remove_ready(struct request *req, const struct dataset_files *files,
                         struct error *err)
{
    const char *name = req->params[0];
    int64_t count = 0;
    if (req->user.role != ROLE_ADMIN && strcmp(files->added_by, req->user.user) != 0)
        return fail(err, DENIED, "dataset '%s' was added by %s: they or an admin may remove it",
                    name, *files->added_by ? files->added_by : "the server's operator");
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn && db_jobs_using(conn, name, &count, err);
    db_read_done(req->services->db, conn);
    if (ok && count)
        return fail(err, PRECONDITION, "%lld job%s that have not ended use%s dataset '%s'",
                    (long long)count, count == 1 ? "" : "s", count == 1 ? "s" : "", name);
    return ok && upload_remove(req->services->folder, name, err);
}

/* DELETE /api/v1/datasets/{name}: the dataset, or else what has come of it so far. */
static bool datasets_remove(struct request *req, struct error *err)
{
    const struct upload upload = upload_of(req);
    struct dataset_files files = {0};
    if (!check_name(req, err))
        return false;
    bool ready = dataset_files_read(folder_of(req, req->params[0]), &files, err);
    bool ok;
    if (ready || err->code == DATA_LOSS)
        ok = remove_ready(req, &files, err);
    else
        ok = upload_abandon(&upload, err);
    dataset_files_release(&files);
    return ok && reply_bytes(req, 204, NULL, "", 0);
}

const struct route datasets_routes[] = {
    {"GET", "/api/v1/datasets", AUTH_IN_PROJECT(ROLE_VIEWER), datasets_list,
     "Datasets that jobs can name", NULL, NULL, 200, "DatasetList"},
    {"GET", "/api/v1/datasets/{name}", AUTH_IN_PROJECT(ROLE_VIEWER), datasets_show,
     "One of them, and its files, also while it is sent", NULL, NULL, 200, "Dataset"},
    {"GET", "/api/v1/datasets/{name}/files", AUTH_IN_PROJECT(ROLE_VIEWER), datasets_content,
     "A file of a dataset, or a part of it",
     "path:string! Range:header If-Range:header If-None-Match:header", NULL, 200,
     "application/octet-stream 206:application/octet-stream 304"},
    {"PUT", "/api/v1/datasets/{name}/files", AUTH_IN_PROJECT(ROLE_MEMBER), datasets_piece,
     "Send a piece of a file, where what has come of it ends", "path:string! offset:integer",
     "application/octet-stream", 200, "DatasetFile"},
    {"POST", "/api/v1/datasets/{name}:publish", AUTH_IN_PROJECT(ROLE_MEMBER), datasets_publish,
     "Make a dataset of the files that were sent", NULL, "DatasetRequest", 201, "Dataset"},
    {"DELETE", "/api/v1/datasets/{name}", AUTH_IN_PROJECT(ROLE_MEMBER), datasets_remove,
     "Remove a dataset, or what has come of one", NULL, NULL, 204, NULL},
    {0},
};
