/* connection.c - reading the system's tables of TCP connections. */

#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/connection.h"

enum { ESTABLISHED = 1, OWN_MAX = 64 };

static void set_ipv4(struct endpoint *out, const void *address)
{
    memset(out->address, 0, 10);
    memset(out->address + 10, 0xff, 2);
    memcpy(out->address + 12, address, 4);
}

bool connection_endpoint(const struct sockaddr *from, struct endpoint *out)
{
    *out = (struct endpoint){0};
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)from;
        set_ipv4(out, &ipv4->sin_addr);
        out->port = ntohs(ipv4->sin_port);
        return true;
    }
    const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)from;
    if (from->sa_family != AF_INET6)
        return false;
    memcpy(out->address, &ipv6->sin6_addr, sizeof(out->address));
    out->port = ntohs(ipv6->sin6_port);
    return true;
}

bool connection_same(const struct endpoint *a, const struct endpoint *b)
{
    return a->port == b->port && !memcmp(a->address, b->address, sizeof(a->address));
}

/* As the tables print it: words of the machine's order, in hexadecimal, and the port. */
static bool read_endpoint(const char *text, struct endpoint *out)
{
    uint32_t words[4] = {0};
    char *end;
    size_t digits = strcspn(text, ":");
    if ((digits != 8 && digits != 32) || text[digits] != ':')
        return false;
    for (size_t i = 0; i < digits / 8; i++) {
        char word[9] = {0};
        memcpy(word, text + 8 * i, 8);
        words[i] = (uint32_t)strtoul(word, &end, 16);
        if (*end)
            return false;
    }
    if (digits == 8)
        set_ipv4(out, words);
    else
        memcpy(out->address, words, sizeof(words));
    out->port = (uint16_t)strtoul(text + digits + 1, &end, 16);
    return !*end;
}

/* False: `each` wants no more. */
static bool read_table(const char *path,
                       bool (*each)(void *arg, const struct connection *connection), void *arg)
{
    char line[512], local[80], remote[80];
    unsigned state, user;
    bool goes_on = true;
    FILE *file = fopen(path, "re");
    while (file && goes_on && fgets(line, sizeof(line), file)) {
        struct connection row = {0};
        if (sscanf(line, " %*d: %79s %79s %x %*s %*s %*s %u %*d %" SCNu64, local, remote,
                   &state, &user, &row.inode) != 5 ||
            state != ESTABLISHED || !row.inode || !read_endpoint(local, &row.local) ||
            !read_endpoint(remote, &row.remote))
            continue;
        row.user = user;
        goes_on = each(arg, &row);
    }
    if (file)
        fclose(file);
    return goes_on;
}

void connection_each(bool (*each)(void *arg, const struct connection *connection), void *arg)
{
    if (read_table("/proc/net/tcp", each, arg))
        (void)read_table("/proc/net/tcp6", each, arg);
}

bool connection_is_held_by(pid_t pid, uint64_t inode)
{
    char folder[40], wanted[40], found[40];
    snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
    snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
    bool held = false;
    DIR *files = opendir(folder);
    const struct dirent *entry;
    while (files && !held && (entry = readdir(files))) {
        ssize_t size = readlinkat(dirfd(files), entry->d_name, found, sizeof(found) - 1);
        if (size <= 0)
            continue;
        found[size] = '\0';
        held = !strcmp(found, wanted);
    }
    if (files)
        closedir(files);
    return held;
}

/* --- where a connection leads to --- */

struct search {
    const struct endpoint *peer;
    struct endpoint own[OWN_MAX]; /* this process's ends of connections to the peer */
    int own_count;
    pid_t pid;
    bool found;
};

static bool find_own(void *arg, const struct connection *row)
{
    struct search *search = arg;
    if (connection_same(&row->remote, search->peer) &&
        connection_is_held_by(getpid(), row->inode))
        search->own[search->own_count++] = row->local;
    return search->own_count < OWN_MAX;
}

static bool find_other(void *arg, const struct connection *row)
{
    struct search *search = arg;
    bool other = false;
    for (int i = 0; i < search->own_count && !other; i++)
        other = connection_same(&row->remote, &search->own[i]) &&
                connection_same(&row->local, search->peer);
    search->found = other && connection_is_held_by(search->pid, row->inode);
    return !search->found;
}

bool connection_leads_to(const struct endpoint *peer, pid_t pid)
{
    struct search search = {.peer = peer, .pid = pid};
    connection_each(find_own, &search);
    if (search.own_count)
        connection_each(find_other, &search);
    return search.found;
}
