/* network.c - follows the connections of a task. */

#include "scheduler/agent/network.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"

struct found {
    struct socket_bytes *list;
    int count;
    int capacity;
};

/* "socket:[INODE]"; 0: it is something else. */
static uint32_t inode_of(int folder, const char *name)
{
    char text[64];
    unsigned inode;
    ssize_t size = readlinkat(folder, name, text, sizeof(text) - 1);
    text[size > 0 ? size : 0] = '\0';
    return sscanf(text, "socket:[%u]", &inode) == 1 ? inode : 0;
}

/* False when what it has open is not to be seen; one that has gone has nothing open. */
static bool look_at(pid_t pid, const struct sockets *sockets, struct found *found)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    struct dirent *entry;
    if (!folder)
        return errno == ENOENT || errno == ESRCH;
    while ((entry = readdir(folder)) && found->count < NETWORK_SOCKETS_MAX) {
        uint32_t inode = inode_of(dirfd(folder), entry->d_name);
        const struct socket_bytes *one = inode ? sockets_find(sockets, inode) : NULL;
        if (!one)
            continue;
        found->list =
            alloc_grow(found->list, found->count, &found->capacity, sizeof(*found->list));
        found->list[found->count++] = *one;
    }
    closedir(folder);
    return true;
}

static int by_cookie(const void *a, const void *b)
{
    uint64_t left = ((const struct socket_bytes *)a)->cookie,
             right = ((const struct socket_bytes *)b)->cookie;
    return (left > right) - (left < right);
}

/* Sorts them, each once. */
static void make_set(struct found *found)
{
    int kept = 0;
    if (found->count)
        qsort(found->list, (size_t)found->count, sizeof(*found->list), by_cookie);
    for (int i = 0; i < found->count; i++) {
        if (!kept || found->list[kept - 1].cookie != found->list[i].cookie)
            found->list[kept++] = found->list[i];
    }
    found->count = kept;
}

static void add(struct network *network, const struct socket_bytes *now)
{
    const struct socket_bytes *last =
        network->seen_count ? bsearch(now, network->seen, (size_t)network->seen_count,
                                      sizeof(*network->seen), by_cookie)
                            : NULL;
    int64_t received = now->received - (last ? last->received : 0),
            sent = now->sent - (last ? last->sent : 0);
    network->received_bytes += received > 0 ? received : 0;
    network->sent_bytes += sent > 0 ? sent : 0;
}

bool network_look(struct network *network, const struct sockets *sockets, const pid_t *pids,
                  int pids_count)
{
    struct found found = {0};
    bool ok = sockets->known;
    for (int i = 0; i < pids_count && ok; i++)
        ok = look_at(pids[i], sockets, &found);
    if (!ok) {
        free(found.list);
        return false;
    }
    make_set(&found);
    for (int i = 0; i < found.count; i++)
        add(network, &found.list[i]);
    free(network->seen);
    network->seen = found.list;
    network->seen_count = found.count;
    return true;
}

void network_release(struct network *network)
{
    free(network->seen);
    *network = (struct network){0};
}
