/*
 * mask.c - finds secrets in streams.
 *
 * Each word is looked for as Knuth, Morris and Pratt do: the time is the number of words for
 * each byte, whatever they are.  What a stream keeps back is the longest end of it that begins
 * a word: nothing before that can become part of a secret any more.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "scheduler/shim/mask.h"

struct mask_word {
    char *bytes;
    uint32_t *back; /* [n]: the longest start of the word that its first n bytes end with */
    size_t size;
};

/* --- words --- */

static void word_learn(struct mask_word *word)
{
    size_t matched = 0;
    word->back[0] = word->back[1] = 0;
    for (size_t i = 1; i < word->size; i++) {
        while (matched && word->bytes[i] != word->bytes[matched])
            matched = word->back[matched];
        matched += word->bytes[i] == word->bytes[matched];
        word->back[i + 1] = (uint32_t)matched;
    }
}

static bool word_add(struct mask *mask, const char *bytes, size_t size)
{
    for (int i = 0; i < mask->count; i++) {
        if (mask->words[i].size == size && memcmp(mask->words[i].bytes, bytes, size) == 0)
            return true;
    }
    struct mask_word *words = realloc(mask->words, (size_t)(mask->count + 1) * sizeof(*words));
    if (!words)
        return false;
    mask->words = words;
    struct mask_word *word = &words[mask->count];
    *word = (struct mask_word){malloc(size), malloc((size + 1) * sizeof(*word->back)), size};
    mask->count++; /* mask_close() frees what there is of it */
    if (!word->bytes || !word->back)
        return false;
    memcpy(word->bytes, bytes, size);
    word_learn(word);
    if (size > mask->longest)
        mask->longest = size;
    return true;
}

bool mask_add(struct mask *mask, const char *bytes, size_t size)
{
    if (size < MASK_BYTES_MIN)
        return true;
    if (!word_add(mask, bytes, size))
        return false;
    for (size_t at = 0; at < size && mask->count < MASK_WORDS_MAX;) {
        const char *end = memchr(bytes + at, '\n', size - at);
        size_t line = end ? (size_t)(end - bytes) - at : size - at;
        if (line >= MASK_LINE_BYTES_MIN && !word_add(mask, bytes + at, line))
            return false;
        at += line + 1;
    }
    return true;
}

static bool file_add(struct mask *mask, int folder, const char *name)
{
    static char bytes[MASK_BYTES_MAX + 1];
    size_t size = 0;
    ssize_t n = 1;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    while (fd >= 0 && n && size < sizeof(bytes)) {
        n = read(fd, bytes + size, sizeof(bytes) - size);
        if (n < 0 && errno != EINTR)
            break;
        size += n > 0 ? (size_t)n : 0;
    }
    bool ok = fd >= 0 && n >= 0 && (size <= MASK_BYTES_MAX || ((errno = EFBIG), false));
    ok = ok && mask_add(mask, bytes, size);
    int why = errno;
    explicit_bzero(bytes, sizeof(bytes));
    if (fd >= 0)
        close(fd);
    errno = why;
    return ok;
}

bool mask_open(struct mask *mask)
{
    DIR *folder = opendir(MASK_FOLDER);
    struct dirent *entry;
    bool ok = folder || errno == ENOENT;
    while (ok && folder && (entry = readdir(folder))) {
        if (entry->d_name[0] != '.')
            ok = file_add(mask, dirfd(folder), entry->d_name);
    }
    int why = errno;
    if (folder)
        closedir(folder);
    errno = why;
    return ok;
}

void mask_close(struct mask *mask)
{
    /* Without secrets the folder is not ours: a task may have made it, or a link. */
    int fd =
        mask->count ? open(MASK_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder)
        closedir(folder);
    for (int i = 0; i < mask->count; i++) {
        if (mask->words[i].bytes)
            explicit_bzero(mask->words[i].bytes, mask->words[i].size);
        free(mask->words[i].bytes);
        free(mask->words[i].back);
    }
    free(mask->words);
    *mask = (struct mask){0};
}

/* --- streams --- */

/* Room for `size` more bytes, and the counts of the words. */
static bool stream_room(const struct mask *mask, struct mask_stream *stream, size_t size)
{
    size_t wanted = stream->size + size;
    if (!stream->matched)
        stream->matched = calloc((size_t)mask->count, sizeof(*stream->matched));
    if (!stream->marked)
        stream->marked = calloc((size_t)mask->count, sizeof(*stream->marked));
    if (!stream->matched || !stream->marked)
        return false;
    if (wanted <= stream->room)
        return true;
    char *bytes = realloc(stream->bytes, wanted);
    if (bytes)
        stream->bytes = bytes;
    bool *hidden = realloc(stream->hidden, wanted * sizeof(*hidden));
    if (hidden)
        stream->hidden = hidden;
    if (!bytes || !hidden)
        return false;
    stream->room = wanted;
    return true;
}

/* Follows a byte in a word; when it is the word's last, the word is hidden. */
static void word_step(const struct mask_word *word, struct mask_stream *stream, size_t at,
                      size_t *matched, size_t *marked)
{
    char byte = stream->bytes[at];
    while (*matched && (*matched == word->size || byte != word->bytes[*matched]))
        *matched = word->back[*matched];
    *matched += byte == word->bytes[*matched];
    *marked += *marked < word->size;
    if (*matched != word->size)
        return;
    size_t fresh = *marked; /* not hidden by this word's last finding */
    memset(stream->hidden + at + 1 - fresh, true, fresh);
    *marked = 0;
}

/* Follows the bytes from `at` to `end`; those that begin nothing are passed over at once. */
static void word_run(const struct mask_word *word, struct mask_stream *stream, size_t at,
                     size_t end, size_t *matched, size_t *marked)
{
    while (at < end) {
        const char *bytes = stream->bytes + at;
        const char *first = *matched ? bytes : memchr(bytes, word->bytes[0], end - at);
        size_t passed = first ? (size_t)(first - bytes) : end - at;
        *marked = passed < word->size - *marked ? *marked + passed : word->size;
        at += passed;
        if (at < end)
            word_step(word, stream, at++, matched, marked);
    }
}

/* Hands on the first `count` bytes. */
static void stream_out(struct mask_stream *stream, size_t count, mask_out *out, void *self)
{
    for (size_t at = 0, end; at < count; at = end) {
        bool hidden = stream->hidden[at];
        for (end = at; end < count && stream->hidden[end] == hidden;)
            end++;
        if (!hidden)
            out(self, stream->bytes + at, end - at);
        else if (at || !stream->was_hidden)
            out(self, "***", 3);
        stream->was_hidden = hidden;
    }
    stream->size -= count;
    memmove(stream->bytes, stream->bytes + count, stream->size);
    memmove(stream->hidden, stream->hidden + count, stream->size * sizeof(*stream->hidden));
}

static size_t stream_undecided(const struct mask *mask, const struct mask_stream *stream)
{
    size_t most = 0;
    for (int i = 0; i < mask->count; i++) {
        if (stream->matched[i] < mask->words[i].size && stream->matched[i] > most)
            most = stream->matched[i];
        size_t back = mask->words[i].back[stream->matched[i]];
        if (stream->matched[i] == mask->words[i].size && back > most)
            most = back;
    }
    return most;
}

void mask_take(const struct mask *mask, struct mask_stream *stream, const char *bytes,
               size_t size, mask_out *out, void *self)
{
    if (!mask->count) {
        out(self, bytes, size);
        return;
    }
    if (!size || !stream_room(mask, stream, size))
        return;
    memcpy(stream->bytes + stream->size, bytes, size);
    memset(stream->hidden + stream->size, false, size * sizeof(*stream->hidden));
    for (int i = 0; i < mask->count; i++)
        word_run(&mask->words[i], stream, stream->size, stream->size + size,
                 &stream->matched[i], &stream->marked[i]);
    stream->size += size;
    stream_out(stream, stream->size - stream_undecided(mask, stream), out, self);
}

void mask_end(const struct mask *mask, struct mask_stream *stream, mask_out *out, void *self)
{
    size_t start = mask->count && stream->matched ? stream_undecided(mask, stream) : 0;
    if (start >= MASK_BYTES_MIN)
        memset(stream->hidden, true, stream->size * sizeof(*stream->hidden));
    if (stream->size)
        stream_out(stream, stream->size, out, self);
    free(stream->bytes);
    free(stream->hidden);
    free(stream->matched);
    free(stream->marked);
    *stream = (struct mask_stream){0};
}
