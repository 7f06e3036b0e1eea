/* fetch.c - asks for a piece, writes it, checks the whole. */

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "scheduler/agent/fetch.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/link.h"

struct fetch {
    int fd; /* of the file that is under way, -1 */
    char *aside;
    int64_t size; /* of it, as far as it has come */
    int64_t bytes;
    crypto_hash_sha256_state hash;
};

struct fetch *fetch_new(void)
{
    struct fetch *fetch = alloc_bytes(sizeof(*fetch));
    fetch->fd = -1;
    return fetch;
}

static void give_up(struct fetch *fetch)
{
    if (fetch->fd >= 0) {
        close(fetch->fd);
        unlink(fetch->aside);
    }
    fetch->fd = -1;
    free(fetch->aside);
    fetch->aside = NULL;
}

void fetch_free(struct fetch *fetch)
{
    if (!fetch)
        return;
    give_up(fetch);
    free(fetch);
}

int64_t fetch_bytes(const struct fetch *fetch)
{
    return fetch->bytes;
}

enum fetch_result fetch_call_failed(const struct error *err)
{
    return link_is_final(err->code) ? FETCH_FAILED : FETCH_ABSENT;
}

static bool begin(struct fetch *fetch, const struct fetch_file *file, struct error *err)
{
    fetch->aside = alloc_printf("%s.tmp", file->path);
    char *folder = files_above(file->path, 1);
    bool ok = files_make_folder(folder, err);
    free(folder);
    if (ok) {
        unlink(fetch->aside);
        fetch->fd = open(fetch->aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                         file->executable ? 0700 : 0600);
        ok = fetch->fd >= 0 || error_errno(err, INTERNAL, "cannot write %s", fetch->aside);
    }
    fetch->size = 0;
    crypto_hash_sha256_init(&fetch->hash);
    return ok;
}

static bool take(struct fetch *fetch, const struct agent_fetch_response *piece,
                 struct error *err)
{
    const char *at = piece->data;
    for (size_t left = piece->data_size; left;) {
        ssize_t n = write(fetch->fd, at, left);
        if (n < 0)
            return error_errno(err, INTERNAL, "cannot write %s", fetch->aside);
        at += n;
        left -= (size_t)n;
    }
    crypto_hash_sha256_update(&fetch->hash, piece->data, piece->data_size);
    fetch->size += (int64_t)piece->data_size;
    fetch->bytes += (int64_t)piece->data_size;
    return true;
}

static bool end(struct fetch *fetch, const struct fetch_file *file, struct error *err)
{
    uint8_t hash[crypto_hash_sha256_BYTES];
    char text[2 * sizeof(hash) + 1];
    crypto_hash_sha256_final(&fetch->hash, hash);
    sodium_bin2hex(text, sizeof(text), hash, sizeof(hash));
    if (file->sha256 && strcmp(text, file->sha256) != 0)
        return fail(err, DATA_LOSS, "%s came with another SHA-256 than %.64s", file->path,
                    file->sha256);
    if (file->size >= 0 && fetch->size != file->size)
        return fail(err, DATA_LOSS, "%s came with %lld bytes instead of %lld", file->path,
                    (long long)fetch->size, (long long)file->size);
    if (file->kept && fsync(fetch->fd))
        return error_errno(err, INTERNAL, "cannot keep %s", file->path);
    if (rename(fetch->aside, file->path))
        return error_errno(err, INTERNAL, "cannot keep %s", file->path);
    close(fetch->fd);
    fetch->fd = -1;
    give_up(fetch);
    return true;
}

enum fetch_result fetch_piece(struct fetch *fetch, const struct fetch_file *file,
                              struct link *link, const struct agent_task_ref *task,
                              struct error *err)
{
    struct agent_fetch_response piece;
    if (fetch->fd < 0 && !begin(fetch, file, err)) {
        give_up(fetch);
        return FETCH_FAILED;
    }
    struct arena *arena = arena_new();
    enum fetch_result result = FETCH_MORE;
    failpoint("agent.fetch");
    if (!link_fetch(link, task, &file->what, fetch->size, arena, &piece, err))
        result = fetch_call_failed(err);
    else if (!take(fetch, &piece, err))
        result = FETCH_FAILED;
    else if (piece.data_size < LIMIT_SHIP_BYTES) /* the last */
        result = end(fetch, file, err) ? FETCH_DONE : FETCH_FAILED;
    if (result == FETCH_FAILED)
        give_up(fetch);
    arena_free(arena);
    return result;
}
