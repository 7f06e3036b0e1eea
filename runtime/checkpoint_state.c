/* checkpoint_state.c - the file that says which checkpoints are published, as TensorFlow reads
 * it. */

#include <dirent.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/checkpoint_internal.h"
#include "runtime/io/file.h"

#define STATE_BYTES_MAX (16 << 20)

bool checkpoint_state_step(const char *name, size_t size, int64_t *step)
{
    static const char start[] = "model.ckpt-";
    for (size_t i = size; i > 0; i--) {
        if (name[i - 1] == '/') {
            name += i;
            size -= i;
            break;
        }
    }
    size_t digits = sizeof(start) - 1;
    if (size <= digits || size - digits > 18 || memcmp(name, start, digits) != 0)
        return false;
    *step = 0;
    for (size_t i = digits; i < size; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        *step = *step * 10 + (name[i] - '0');
    }
    return true;
}

void checkpoint_state_remove(struct checkpoint_state *state, int index)
{
    state->steps_count--;
    memmove(state->steps + index, state->steps + index + 1,
            sizeof(*state->steps) * (size_t)(state->steps_count - index));
}

void checkpoint_state_add(struct checkpoint_state *state, int64_t step)
{
    for (int i = state->steps_count - 1; i >= 0; i--) {
        if (state->steps[i] == step)
            checkpoint_state_remove(state, i);
    }
    state->steps = alloc_grow(state->steps, state->steps_count, &state->steps_capacity,
                              sizeof(*state->steps));
    state->steps[state->steps_count++] = step;
}

/* The text in quotes of a line `key: "text"`; false if the line has another key. */
static bool line_text(const char *line, size_t size, const char *key, const char **text,
                      size_t *text_size)
{
    size_t key_size = strlen(key);
    if (size < key_size || memcmp(line, key, key_size) != 0)
        return false;
    const char *open = memchr(line, '"', size);
    const char *close = open ? memchr(open + 1, '"', size - (size_t)(open + 1 - line)) : NULL;
    if (!close)
        return false;
    *text = open + 1;
    *text_size = (size_t)(close - open - 1);
    return true;
}

bool checkpoint_state_read(const char *folder, struct checkpoint_state *state,
                           struct error *err)
{
    *state = (struct checkpoint_state){0};
    struct str bytes = {0};
    char *path = alloc_printf("%s/checkpoint", folder);
    bool ok = file_read(path, STATE_BYTES_MAX, &bytes, err);
    free(path);
    if (!ok) {
        str_release(&bytes);
        return err->code == NOT_FOUND;
    }
    int64_t latest = -1, step;
    const char *at = str_text(&bytes), *end = at + bytes.size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((stop ? stop : end) - at), text_size;
        const char *text;
        if (line_text(at, size, "model_checkpoint_path:", &text, &text_size)) {
            if (checkpoint_state_step(text, text_size, &step))
                latest = step;
        } else if (line_text(at, size, "all_model_checkpoint_paths:", &text, &text_size)) {
            if (checkpoint_state_step(text, text_size, &step))
                checkpoint_state_add(state, step);
        }
        at += size + 1;
    }
    if (latest >= 0)
        checkpoint_state_add(state, latest);
    str_release(&bytes);
    return true;
}

bool checkpoint_state_write(const char *folder, const struct checkpoint_state *state,
                            struct error *err)
{
    assert(state->steps_count > 0);
    struct str text = {0};
    str_printf(&text, "model_checkpoint_path: \"model.ckpt-%lld\"\n",
               (long long)state->steps[state->steps_count - 1]);
    for (int i = 0; i < state->steps_count; i++)
        str_printf(&text, "all_model_checkpoint_paths: \"model.ckpt-%lld\"\n",
                   (long long)state->steps[i]);
    char *path = alloc_printf("%s/checkpoint", folder);
    bool ok = file_write(path, text.data, text.size, err);
    free(path);
    str_release(&text);
    return ok;
}

static int compare_steps(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

void checkpoint_state_search(const char *folder_path, struct checkpoint_state *state)
{
    DIR *folder = opendir(folder_path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        size_t size = strlen(entry->d_name);
        size_t end = strlen(CHECKPOINT_MANIFEST);
        int64_t step;
        if (size > end && !strcmp(entry->d_name + size - end, CHECKPOINT_MANIFEST) &&
            checkpoint_state_step(entry->d_name, size - end, &step))
            checkpoint_state_add(state, step);
    }
    if (folder)
        closedir(folder);
    if (state->steps_count)
        qsort(state->steps, (size_t)state->steps_count, sizeof(*state->steps), compare_steps);
}

bool checkpoint_state_has(const struct checkpoint_state *state, int64_t step)
{
    for (int i = 0; i < state->steps_count; i++) {
        if (state->steps[i] == step)
            return true;
    }
    return false;
}

void checkpoint_state_release(struct checkpoint_state *state)
{
    free(state->steps);
    *state = (struct checkpoint_state){0};
}
