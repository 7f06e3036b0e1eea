/* dataset_upload.c - a dataset's files to a server, piece by piece. */

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "cli/change.h"
#include "cli/client.h"
#include "cli/dataset.h"
#include "cli/table.h"
#include "scheduler/agent/files.h"
#include "server/url.h"

#define PIECE_BYTES (8 << 20)
#define PIECE_TIMEOUT_S 300
#define PERCENT 100

struct sending {
    struct client *client;
    const char *name;
    const char *from;
    json_t *come;   /* {path: bytes that the server has} */
    json_t *hashes; /* {path: SHA-256} */
    char **paths;
    int paths_count, paths_capacity;
    int64_t total, sent;
    bool terminal;
    char *piece;
};

/* --- what is to be sent --- */

static bool find_one(void *self, const char *path, bool is_folder)
{
    struct sending *s = self;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct stat info;
    if (*name == '.' || is_folder)
        return is_folder && *name != '.';
    char *whole = alloc_printf("%s/%s", s->from, path);
    if (strcmp(path, "dataset.json") != 0 && stat(whole, &info) == 0 && S_ISREG(info.st_mode)) {
        s->paths = alloc_grow(s->paths, s->paths_count, &s->paths_capacity, sizeof(*s->paths));
        s->paths[s->paths_count++] = alloc_text(path);
        s->total += info.st_size;
    }
    free(whole);
    return true;
}

/* What an earlier try has brought there. */
static bool ask_come(struct sending *s, struct error *err)
{
    char *url = alloc_printf("/api/v1/datasets/%s", s->name);
    json_t *answer = client_json(s->client, "GET", url, NULL, NULL, err), *file;
    size_t i;
    free(url);
    if (!answer)
        return err->code == NOT_FOUND;
    bool uploading = !strcmp(files_text(answer, "state"), "uploading");
    json_array_foreach(uploading ? json_object_get(answer, "files") : NULL, i, file)
        json_object_set_new(s->come, files_text(file, "path"),
                            json_integer(files_int(file, "size")));
    json_decref(answer);
    return true;
}

/* --- sending --- */

static void show_progress(const struct sending *s, const char *path)
{
    if (s->terminal)
        fprintf(stderr, "\r\033[K%3d %%  %s",
                s->total ? (int)((double)s->sent / (double)s->total * PERCENT) : PERCENT, path);
}

static bool send_piece(struct sending *s, const char *path, int64_t offset, size_t size,
                       struct error *err)
{
    struct str url = {0};
    str_printf(&url, "/api/v1/datasets/%s/files?path=", s->name);
    url_encode(&url, path);
    str_printf(&url, "&offset=%" PRId64, offset);
    json_t *answer = client_put(s->client, str_text(&url), s->piece, size, err);
    str_release(&url);
    json_decref(answer);
    return answer != NULL;
}

static bool send_file(struct sending *s, const char *path, struct error *err)
{
    char hash[DATASET_SHA256_TEXT];
    int64_t bytes, offset = json_integer_value(json_object_get(s->come, path));
    char *whole = alloc_printf("%s/%s", s->from, path);
    int file = -1;
    bool ok = dataset_files_sha256(whole, hash, &bytes, err);
    if (ok && offset > bytes)
        ok = fail(err, PRECONDITION,
                  "the server has %lld bytes of %s, which has %lld here: remove what was sent "
                  "(trainyard dataset remove %s), then send it again",
                  (long long)offset, path, (long long)bytes, s->name);
    if (ok) {
        json_object_set_new(s->hashes, path, json_string(hash));
        s->sent += offset;
        file = open(whole, O_RDONLY | O_CLOEXEC);
        ok = file >= 0 || error_errno(err, NOT_FOUND, "cannot read %s", whole);
    }
    /* An empty file is one piece of nothing. */
    for (bool first = true; ok && (offset < bytes || (first && !bytes)); first = false) {
        show_progress(s, path);
        ssize_t size = pread(file, s->piece, PIECE_BYTES, offset);
        if (size < 0 || (size == 0 && bytes))
            ok = error_errno(err, UNKNOWN, "cannot read %s", whole);
        ok = ok && send_piece(s, path, offset, (size_t)size, err);
        offset += ok ? size : 0;
        s->sent += ok ? size : 0;
    }
    if (file >= 0)
        close(file);
    free(whole);
    return ok;
}

static bool publish(struct sending *s, struct error *err)
{
    char *url = alloc_printf("/api/v1/datasets/%s:publish", s->name);
    json_t *body = json_pack("{s:O}", "files", s->hashes);
    char *text = json_dumps(body, JSON_COMPACT);
    if (s->terminal)
        fprintf(stderr, "\r\033[K100 %%  the server looks what is in it ...");
    client_patience(s->client, LIMIT_DESCRIBE_S * 2);
    json_t *answer = client_json(s->client, "POST", url, text, NULL, err);
    if (s->terminal)
        fprintf(stderr, "\r\033[K");
    if (answer)
        printf("dataset %s: %s, %" PRId64 " to train, %" PRId64 " for validation, %" PRId64
               " to test\n",
               s->name, files_text(answer, "format"), files_int(answer, "train"),
               files_int(answer, "validation"), files_int(answer, "test"));
    bool ok = answer != NULL;
    json_decref(answer);
    json_decref(body);
    free(text);
    free(url);
    return ok;
}

bool dataset_upload(const char *dir, const char *name, const char *from, struct error *err)
{
    if (!from)
        return fail(err, INVALID, "--from is missing: the folder that holds the files");
    struct sending s = {.name = name,
                        .from = from,
                        .terminal = isatty(STDERR_FILENO),
                        .come = json_object(),
                        .hashes = json_object(),
                        .piece = alloc_bytes(PIECE_BYTES)};
    files_walk(from, "", find_one, &s);
    s.client = s.paths_count ? client_open(dir, err) : NULL;
    bool ok = s.paths_count ||
              fail(err, NOT_FOUND, "the folder %s has no files that could be sent", from);
    if (ok && s.client)
        client_patience(s.client, PIECE_TIMEOUT_S);
    ok = ok && s.client && ask_come(&s, err);
    for (int i = 0; ok && i < s.paths_count; i++)
        ok = send_file(&s, s.paths[i], err);
    ok = ok && publish(&s, err);
    if (!ok && s.terminal)
        fprintf(stderr, "\n");
    for (int i = 0; i < s.paths_count; i++)
        free(s.paths[i]);
    client_close(s.client);
    json_decref(s.come);
    json_decref(s.hashes);
    free(s.paths);
    free(s.piece);
    return ok;
}

/* --- what is there --- */

bool dataset_upload_list(bool json, struct error *err)
{
    static const char *const head[] = {"DATASET", "STATE",  "FORMAT",   ">TRAIN",
                                       ">TEST",   ">BYTES", "ADDED BY", "ADDED"};
    struct client *client = client_open(NULL, err);
    json_t *answer =
        client ? client_json(client, "GET", "/api/v1/datasets", NULL, NULL, err) : NULL;
    client_close(client);
    if (!answer)
        return false;
    if (json)
        return change_print(answer);
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(answer, "items"), i, item)
    {
        table_cell(table, "%s", files_text(item, "name"));
        table_cell(table, "%s", files_text(item, "state"));
        table_cell(table, "%s", files_text(item, "format"));
        table_cell(table, "%" PRId64, files_int(item, "train"));
        table_cell(table, "%" PRId64, files_int(item, "test"));
        table_cell(table, "%" PRId64, files_int(item, "size"));
        table_cell(table, "%s", files_text(item, "added_by"));
        table_cell(table, "%s", files_text(item, "added_at"));
    }
    table_print(table);
    json_decref(answer);
    return true;
}

/* A request of one dataset, without a body. */
static json_t *send_of(const char *dir, const char *method, const char *name, struct error *err)
{
    struct client *client = client_open(dir, err);
    struct str url = {0};
    str_add(&url, "/api/v1/datasets/");
    url_encode(&url, name);
    json_t *answer =
        client ? client_json(client, method, str_text(&url), NULL, NULL, err) : NULL;
    str_release(&url);
    client_close(client);
    return answer;
}

static void print_column(const json_t *column)
{
    char *shape = json_dumps(json_object_get(column, "shape"), JSON_COMPACT);
    json_int_t classes = files_int(column, "classes");
    printf("  %-24s %-8s %-8s %-14s", files_text(column, "name"), files_text(column, "role"),
           files_text(column, "dtype"), shape ? shape : "");
    if (classes)
        printf(" %" JSON_INTEGER_FORMAT " classes", classes);
    putchar('\n');
    free(shape);
}

bool dataset_upload_show(const char *name, bool json, struct error *err)
{
    json_t *answer = send_of(NULL, "GET", name, err);
    if (!answer)
        return false;
    if (json)
        return change_print(answer);
    if (strcmp(files_text(answer, "state"), "ready") == 0)
        printf("%s: %" PRId64 " examples to train on, %" PRId64 " for validation, %" PRId64
               " to test on\n",
               files_text(answer, "format"), files_int(answer, "train"),
               files_int(answer, "validation"), files_int(answer, "test"));
    else
        printf("%s: %" PRId64 " bytes in %" PRId64 " files have come so far\n",
               files_text(answer, "state"), files_int(answer, "size"),
               files_int(answer, "files_count"));
    size_t i;
    json_t *column;
    json_array_foreach(json_object_get(answer, "columns"), i, column) print_column(column);
    json_decref(answer);
    return true;
}

bool dataset_upload_remove(const char *dir, const char *name, struct error *err)
{
    json_t *answer = send_of(dir, "DELETE", name, err);
    json_decref(answer);
    return answer != NULL;
}
