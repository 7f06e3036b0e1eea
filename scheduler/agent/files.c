/* files.c - reading and writing what is small. */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "scheduler/agent/files.h"

static bool folder_sync(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

bool files_write(const char *folder, const char *name, const char *text, struct error *err)
{
    char *path = alloc_printf("%s/%s", folder, name);
    char *aside = alloc_printf("%s/%s.tmp", folder, name);
    size_t size = strlen(text), done = 0;
    int fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0;
    while (ok && done < size) {
        ssize_t n = write(fd, text + done, size - done);
        ok = n > 0 || errno == EINTR;
        done += n > 0 ? (size_t)n : 0;
    }
    ok = ok && fsync(fd) == 0;
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    ok = ok && rename(aside, path) == 0 && folder_sync(folder);
    if (!ok) {
        error_errno(err, errno == ENOSPC ? EXHAUSTED : INTERNAL, "cannot write %s", path);
        unlink(aside);
    }
    free(path);
    free(aside);
    return ok;
}

bool files_write_json(const char *folder, const char *name, json_t *json, struct error *err)
{
    char *text = json_dumps(json, JSON_INDENT(1));
    json_decref(json);
    if (!text)
        return fail(err, INTERNAL, "cannot write %s/%s: not valid UTF-8", folder, name);
    bool ok = files_write(folder, name, text, err);
    free(text);
    return ok;
}

json_t *files_read_json(const char *folder, const char *name, struct error *err)
{
    char *path = alloc_printf("%s/%s", folder, name);
    json_error_t problem;
    json_t *json = NULL;
    FILE *file = fopen(path, "re");
    if (!file) {
        error_errno(err, errno == ENOENT ? NOT_FOUND : INTERNAL, "cannot read %s", path);
    } else {
        json = json_loadf(file, 0, &problem);
        if (!json)
            fail(err, DATA_LOSS, "%s: line %d: %s", path, problem.line, problem.text);
        fclose(file);
    }
    if (json && !json_is_object(json)) {
        fail(err, DATA_LOSS, "%s: not an object", path);
        json_decref(json);
        json = NULL;
    }
    free(path);
    return json;
}

const char *files_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

int64_t files_int(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

bool files_bool(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

bool files_make_folder(const char *path, struct error *err)
{
    char *part = alloc_text(path);
    bool ok = true;
    for (char *at = part + 1; ok; at++) {
        if (*at != '/' && *at)
            continue;
        char end = *at;
        *at = '\0';
        ok = mkdir(part, 0700) == 0 || errno == EEXIST;
        if (!ok)
            error_errno(err, INTERNAL, "cannot make the folder %s", part);
        *at = end;
        if (!end)
            break;
    }
    free(part);
    return ok;
}

static int tree_remove(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    remove(path);
    return 0;
}

void files_remove_folder(const char *path)
{
    nftw(path, tree_remove, 16, FTW_DEPTH | FTW_PHYS);
}

const char *files_last_line(const char *folder, const char *name, char *out, size_t out_size)
{
    char *path = alloc_printf("%s/%s", folder, name);
    char text[4096];
    ssize_t size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        off_t end = lseek(fd, 0, SEEK_END);
        off_t start = end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0;
        size = pread(fd, text, sizeof(text) - 1, start);
        close(fd);
    }
    free(path);
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
        size--;
    text[size < 0 ? 0 : size] = '\0';
    const char *line = strrchr(text, '\n');
    snprintf(out, out_size, "%s", line ? line + 1 : text);
    return out;
}
