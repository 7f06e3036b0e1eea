/* partial_names.c - see partial_names.h. */

#include "runtime/partial_names.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/session.h"

void partial_names_init(struct partial_names *all, const struct session_run *names)
{
    *all = (struct partial_names){
        .names = names,
        .fed = alloc_array((size_t)names->feeds_count, sizeof(bool)),
        .taken = alloc_array((size_t)names->fetches_count, sizeof(bool)),
        .left = names->feeds_count + names->fetches_count,
    };
}

void partial_names_release(struct partial_names *all)
{
    free(all->fed);
    free(all->taken);
}

/* "x" and "x:0" are the same. */
static bool same_name(const char *a, const char *b)
{
    size_t size_a = strlen(a), size_b = strlen(b);
    size_a -= size_a > 2 && !strcmp(a + size_a - 2, ":0") ? 2 : 0;
    size_b -= size_b > 2 && !strcmp(b + size_b - 2, ":0") ? 2 : 0;
    return size_a == size_b && !memcmp(a, b, size_a);
}

/* Marks what the call names in `used`; `indices` gets where they are. */
static bool find_names(const char *const *names, int count, const char *const *known,
                       int known_count, bool *used, int *indices, const char *what,
                       struct error *err)
{
    for (int i = 0; i < count; i++) {
        int at = 0;
        while (at < known_count && !same_name(known[at], names[i]))
            at++;
        if (at == known_count)
            return fail(err, INVALID, "The %s %s was not specified in partial_run_setup.", what,
                        names[i]);
        if (used[at])
            return fail(err, INVALID, "The %s %s has already been %s.", what, names[i],
                        *what == 'f' && what[2] == 'e' ? "fed" : "fetched");
        used[at] = true;
        indices[i] = at;
    }
    return true;
}

bool partial_names_find(const struct partial_names *all, const struct session_run *run,
                        struct partial_request *request, struct error *err)
{
    const struct session_run *names = all->names;
    *request = (struct partial_request){
        .run = run,
        .fed = alloc_array((size_t)names->feeds_count, sizeof(bool)),
        .taken = alloc_array((size_t)names->fetches_count, sizeof(bool)),
        .feeds = alloc_array((size_t)run->feeds_count, sizeof(int)),
        .fetches = alloc_array((size_t)run->fetches_count, sizeof(int)),
    };
    memcpy(request->fed, all->fed, (size_t)names->feeds_count * sizeof(bool));
    memcpy(request->taken, all->taken, (size_t)names->fetches_count * sizeof(bool));
    return find_names(run->feeds, run->feeds_count, names->feeds, names->feeds_count,
                      request->fed, request->feeds, "feed", err) &&
           find_names(run->fetches, run->fetches_count, names->fetches, names->fetches_count,
                      request->taken, request->fetches, "fetch", err);
}

void partial_names_use(struct partial_names *all, const struct partial_request *request)
{
    memcpy(all->fed, request->fed, (size_t)all->names->feeds_count * sizeof(bool));
    memcpy(all->taken, request->taken, (size_t)all->names->fetches_count * sizeof(bool));
    all->left -= request->run->feeds_count + request->run->fetches_count;
}

void partial_names_done(struct partial_request *request)
{
    free(request->fed);
    free(request->taken);
    free(request->feeds);
    free(request->fetches);
}

bool partial_names_too_early(const struct partial_names *all, int feed, struct error *err)
{
    return fail(err, INVALID,
                "Fetch %s can't be computed from the feeds that have been fed so far.",
                all->names->feeds[feed]);
}
