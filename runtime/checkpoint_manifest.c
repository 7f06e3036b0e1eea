/* checkpoint_manifest.c - what belongs to a checkpoint, with sizes and checksums, as JSON. */

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/crc32c.h"
#include "runtime/checkpoint_internal.h"
#include "runtime/io/file.h"

#define MANIFEST_FORMAT 1
#define MANIFEST_BYTES_MAX (8 << 20)
#define MANIFEST_READ_BYTES (1 << 20)

char *checkpoint_part(const char *prefix, int shards, int index)
{
    if (index < shards)
        return alloc_printf("%s.data-%05d-of-%05d", prefix, index, shards);
    return alloc_printf("%s%s", prefix, index == shards ? ".index" : CHECKPOINT_MANIFEST);
}

/* Makes room for what is known of its files. */
static void manifest_open(struct checkpoint_manifest *manifest, int shards)
{
    manifest->shards = shards;
    manifest->bytes = alloc_array((size_t)shards + 1, sizeof(*manifest->bytes));
    manifest->crc = alloc_array((size_t)shards + 1, sizeof(*manifest->crc));
}

static bool file_sum(const char *path, int64_t *bytes, uint32_t *crc, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return file_error(err, "read", path);
    char *buffer = alloc_bytes(MANIFEST_READ_BYTES);
    ssize_t count;
    *bytes = 0;
    *crc = 0;
    while ((count = read(fd, buffer, MANIFEST_READ_BYTES)) != 0) {
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            break;
        *crc = crc32c_extend(*crc, buffer, (size_t)count);
        *bytes += count;
    }
    bool ok = count == 0 || file_error(err, "read", path);
    close(fd);
    free(buffer);
    return ok;
}

/* The part of a path behind its last slash. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool checkpoint_manifest_write(const char *prefix, struct checkpoint_manifest *manifest,
                               struct error *err)
{
    struct str text = {0};
    bool ok = true;
    manifest_open(manifest, manifest->shards);
    str_printf(&text, "{\n  \"format\": %d,\n  \"step\": %lld,\n  \"epoch\": %lld,\n",
               MANIFEST_FORMAT, (long long)manifest->step, (long long)manifest->epoch);
    if (isfinite(manifest->score))
        str_printf(&text, "  \"score\": %.17g,\n", manifest->score);
    str_add(&text, "  \"graph\": ");
    str_add_json(&text, manifest->graph, strlen(manifest->graph));
    if (manifest->model)
        str_printf(&text, ",\n  \"model\": %s", manifest->model);
    str_add(&text, ",\n  \"files\": [\n");
    for (int i = 0; ok && i <= manifest->shards; i++) {
        char *path = checkpoint_part(prefix, manifest->shards, i);
        ok = file_sum(path, &manifest->bytes[i], &manifest->crc[i], err);
        str_printf(&text, "    {\"name\": \"%s\", \"bytes\": %lld, \"crc32c\": \"%08x\"}%s\n",
                   base_name(path), (long long)manifest->bytes[i], manifest->crc[i],
                   i < manifest->shards ? "," : "");
        free(path);
    }
    str_add(&text, "  ]\n}\n");
    if (ok) {
        char *path = alloc_printf("%s" CHECKPOINT_MANIFEST, prefix);
        ok = file_write(path, text.data, text.size, err);
        free(path);
    }
    str_release(&text);
    return ok;
}

/* Fills `manifest` from the JSON; false if it does not have the form. */
static bool manifest_take(json_t *root, const char *prefix,
                          struct checkpoint_manifest *manifest)
{
    int format = 0;
    json_int_t step, epoch;
    const char *graph;
    json_t *files, *score = NULL, *model = NULL;
    if (json_unpack(root, "{s:i s:I s:I s:s s:o s?o s?o}", "format", &format, "step", &step,
                    "epoch", &epoch, "graph", &graph, "files", &files, "score", &score, "model",
                    &model) < 0 ||
        format != MANIFEST_FORMAT || json_array_size(files) < 2 ||
        json_array_size(files) > LIMIT_JOB_TASKS + 2)
        return false;
    manifest_open(manifest, (int)json_array_size(files) - 1);
    for (int i = 0; i <= manifest->shards; i++) {
        const char *name, *crc;
        json_int_t bytes;
        if (json_unpack(json_array_get(files, (size_t)i), "{s:s s:I s:s}", "name", &name,
                        "bytes", &bytes, "crc32c", &crc) < 0)
            return false;
        char *wanted = checkpoint_part(base_name(prefix), manifest->shards, i);
        bool same = !strcmp(wanted, name);
        free(wanted);
        if (!same)
            return false;
        manifest->bytes[i] = bytes;
        manifest->crc[i] = (uint32_t)strtoul(crc, NULL, 16);
    }
    manifest->step = step;
    manifest->epoch = epoch;
    manifest->score = score ? json_number_value(score) : (double)NAN;
    manifest->graph = alloc_text(graph);
    if (json_is_object(model))
        manifest->model = json_dumps(model, JSON_COMPACT);
    return true;
}

bool checkpoint_manifest_read(const char *prefix, struct checkpoint_manifest *manifest,
                              struct error *err)
{
    *manifest = (struct checkpoint_manifest){0};
    struct str bytes = {0};
    char *path = alloc_printf("%s" CHECKPOINT_MANIFEST, prefix);
    bool ok = file_read(path, MANIFEST_BYTES_MAX, &bytes, err);
    if (ok) {
        json_t *root = json_loadb(str_text(&bytes), bytes.size, 0, NULL);
        ok = root && manifest_take(root, prefix, manifest);
        if (!ok) {
            checkpoint_manifest_release(manifest);
            fail(err, DATA_LOSS, "%s is damaged or of another version", path);
        }
        json_decref(root);
    }
    free(path);
    str_release(&bytes);
    return ok;
}

bool checkpoint_manifest_check(const char *prefix, const struct checkpoint_manifest *manifest,
                               struct error *err)
{
    bool ok = true;
    for (int i = 0; ok && i <= manifest->shards; i++) {
        char *path = checkpoint_part(prefix, manifest->shards, i);
        int64_t bytes;
        uint32_t crc;
        ok = file_sum(path, &bytes, &crc, err);
        if (ok && bytes != manifest->bytes[i])
            ok = fail(err, DATA_LOSS, "%s has %lld bytes in place of %lld", path,
                      (long long)bytes, (long long)manifest->bytes[i]);
        else if (ok && crc != manifest->crc[i])
            ok = fail(err, DATA_LOSS, "%s is damaged: checksum %08x in place of %08x", path,
                      crc, manifest->crc[i]);
        free(path);
    }
    return ok;
}

void checkpoint_manifest_release(struct checkpoint_manifest *manifest)
{
    free(manifest->graph);
    free(manifest->model);
    free(manifest->bytes);
    free(manifest->crc);
    *manifest = (struct checkpoint_manifest){0};
}
