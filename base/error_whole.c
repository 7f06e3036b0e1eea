/* error_whole.c - a ring of long texts. */

#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/error_whole.h"
#include "base/str.h"

struct kept {
    char part[sizeof(((struct error *)NULL)->text)]; /* as errors have it */
    char *whole;                                     /* NULL: free */
    size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards: ring, next.  A leaf */
static struct kept ring[ERROR_WHOLE_MAX];
static int next;

static struct kept *find_locked(const char *part)
{
    for (int i = 0; i < ERROR_WHOLE_MAX; i++) {
        if (ring[i].whole && strcmp(ring[i].part, part) == 0)
            return &ring[i];
    }
    return NULL;
}

void error_whole_keep(const struct error *err, const char *whole, size_t size)
{
    if (size > ERROR_WHOLE_BYTES)
        size = ERROR_WHOLE_BYTES;
    char *copy = alloc_text_n(whole, size);
    str_make_utf8(copy);
    pthread_mutex_lock(&lock);
    struct kept *kept = find_locked(err->text);
    if (!kept) {
        kept = &ring[next];
        next = (next + 1) % ERROR_WHOLE_MAX;
    }
    free(kept->whole);
    kept->whole = copy;
    kept->size = size;
    memcpy(kept->part, err->text, sizeof(kept->part));
    pthread_mutex_unlock(&lock);
}

void error_whole_add(const struct error *err, struct str *out)
{
    pthread_mutex_lock(&lock);
    const struct kept *kept = find_locked(err->text);
    if (kept)
        str_add_bytes(out, kept->whole, kept->size);
    pthread_mutex_unlock(&lock);
    if (!kept)
        str_add(out, err->text);
}
