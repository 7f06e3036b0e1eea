/* upload.c - files by their SHA-256. */

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/upload.h"
#include "scheduler/agent/files.h"

struct upload {
    struct client *client;
    const char *folder; /* where paths begin */
    json_t *files;      /* path: hash */
    const char *below;  /* of a folder that is gone through: its path, else NULL */
    struct error *err;
    bool ok;
};

static bool read_whole(const char *path, struct str *out, struct error *err)
{
    char part[65536];
    size_t size;
    FILE *file = fopen(path, "re");
    if (!file)
        return error_errno(err, NOT_FOUND, "%s", path);
    while ((size = fread(part, 1, sizeof(part), file)) > 0 && out->size <= LIMIT_FILE_BYTES)
        str_add_bytes(out, part, size);
    bool ok = !ferror(file) || error_errno(err, UNAVAILABLE, "%s", path);
    fclose(file);
    if (ok && out->size > LIMIT_FILE_BYTES)
        ok = fail(err, INVALID,
                  "%s has more than the %d bytes that a file of a job may have: put it on the "
                  "node, or make it a dataset",
                  path, LIMIT_FILE_BYTES);
    return ok;
}

/* Uploads one file that is not there yet; `path` is its name in the job. */
static bool upload_one(struct upload *upload, const char *path)
{
    struct str bytes = {0};
    uint8_t hash[crypto_hash_sha256_BYTES];
    char text[2 * sizeof(hash) + 1];
    struct error *err = upload->err;
    char *whole = alloc_printf("%s/%s", upload->folder, path);
    bool ok =
        path_is_below(path) ||
        fail(err, INVALID, "'%.200s' cannot be a file of a job: it must be below the folder %s",
             path, upload->folder);
    if (ok && read_whole(whole, &bytes, err)) {
        crypto_hash_sha256(hash, (const uint8_t *)str_text(&bytes), bytes.size);
        sodium_bin2hex(text, sizeof(text), hash, sizeof(hash));
        char *url = alloc_printf("/api/v1/files/%s", text);
        json_t *answer = client_json(upload->client, "GET", url, NULL, NULL, err);
        if (!answer && err->code == NOT_FOUND)
            answer = client_put(upload->client, url, str_text(&bytes), bytes.size, err);
        ok = answer != NULL;
        if (ok)
            json_object_set_new(upload->files, path, json_string(text));
        json_decref(answer);
        free(url);
    } else {
        ok = false;
    }
    str_release(&bytes);
    free(whole);
    return ok;
}

static bool on_found(void *self, const char *path, bool is_folder)
{
    struct upload *upload = self;
    const char *name = strrchr(path, '/');
    bool hidden = (name ? name[1] : path[0]) == '.' || strstr(path, "__pycache__");
    if (!is_folder && !hidden && upload->ok)
        upload->ok = upload_one(upload, path);
    return !hidden || strcmp(path, upload->below) == 0;
}

bool upload_files(struct client *client, json_t *spec, const char *folder, struct error *err)
{
    json_t *list = json_object_get(spec, "files");
    if (!json_is_array(list))
        return true;
    struct upload upload = {client, folder, json_object(), NULL, err, true};
    size_t i;
    json_t *entry;
    json_array_foreach(list, i, entry)
    {
        const char *path = json_string_value(entry);
        struct stat info;
        char *whole = alloc_printf("%s/%s", folder, path ? path : "");
        bool is_folder = path && stat(whole, &info) == 0 && S_ISDIR(info.st_mode);
        free(whole);
        if (!path) {
            upload.ok = error_at(err, "/files", INVALID, "a file is no text, but its path");
        } else if (is_folder) {
            upload.below = path;
            files_walk(folder, path, on_found, &upload);
        } else {
            upload.ok = upload_one(&upload, path);
        }
        if (!upload.ok)
            break;
    }
    json_object_set_new(spec, "files", upload.files);
    return upload.ok;
}
