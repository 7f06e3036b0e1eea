/* usage.c - reads /proc once for all tasks. */

#include "scheduler/agent/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"

struct process {
    pid_t pid;
    pid_t parent;
    int64_t ticks;        /* its own */
    int64_t waited_ticks; /* of children that it has waited for */
    int64_t resident_pages;
};

struct usage_table {
    struct process *list; /* by pid */
    int count;
    int capacity;
    struct sockets sockets; /* looked at when a task is the first to need them */
    bool sockets_looked;
};

/* --- reading --- */

static bool read_file(pid_t pid, const char *name, char *out, size_t out_size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, out, out_size - 1);
    if (fd >= 0)
        close(fd);
    out[size > 0 ? size : 0] = '\0';
    return size > 0;
}

static bool read_process(pid_t pid, struct process *out)
{
    char text[1024];
    int parent;
    long long user, system, waited_user, waited_system, resident;
    const char *rest = read_file(pid, "stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
    if (!rest || sscanf(rest + 1,
                        " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld"
                        " %*d %*d %*d %*d %*u %*u %lld",
                        &parent, &user, &system, &waited_user, &waited_system, &resident) != 6)
        return false;
    *out = (struct process){pid, parent, user + system, waited_user + waited_system, resident};
    return true;
}

static int by_pid(const void *a, const void *b)
{
    pid_t left = ((const struct process *)a)->pid, right = ((const struct process *)b)->pid;
    return (left > right) - (left < right);
}

struct usage_table *usage_look(void)
{
    struct usage_table *table = alloc_bytes(sizeof(*table));
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        struct process process;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10); /* 0 for what is no number */
        if (pid <= 0 || !read_process(pid, &process))
            continue;
        table->list =
            alloc_grow(table->list, table->count, &table->capacity, sizeof(*table->list));
        table->list[table->count++] = process;
    }
    if (folder)
        closedir(folder);
    if (table->count)
        qsort(table->list, (size_t)table->count, sizeof(*table->list), by_pid);
    return table;
}

void usage_free(struct usage_table *table)
{
    if (!table)
        return;
    sockets_release(&table->sockets);
    free(table->list);
    free(table);
}

/* --- adding up --- */

static const struct process *find(const struct usage_table *table, pid_t pid)
{
    struct process wanted = {.pid = pid};
    return table->count ? bsearch(&wanted, table->list, (size_t)table->count,
                                  sizeof(*table->list), by_pid)
                        : NULL;
}

/* Parents may have changed while the table was read: a circle ends at its length. */
static bool descends(const struct usage_table *table, const struct process *process,
                     pid_t ancestor)
{
    for (int i = 0; process && i < table->count; i++) {
        if (process->parent == ancestor)
            return true;
        process = find(table, process->parent);
    }
    return false;
}

/* Bytes from and to disks, of the process and of those it has waited for. */
static void add_disk(pid_t pid, struct usage_sum *sum)
{
    char text[1024];
    long long bytes;
    bool readable = read_file(pid, "io", text, sizeof(text));
    const char *from = readable ? strstr(text, "\nread_bytes: ") : NULL;
    const char *to = readable ? strstr(text, "\nwrite_bytes: ") : NULL;
    if (!from || !to || sum->read_bytes < 0) {
        sum->read_bytes = sum->written_bytes = -1;
        return;
    }
    if (sscanf(from, "\nread_bytes: %lld", &bytes) == 1)
        sum->read_bytes += bytes;
    if (sscanf(to, "\nwrite_bytes: %lld", &bytes) == 1)
        sum->written_bytes += bytes;
}

static void look_at_network(struct usage_table *table, const pid_t *pids, int pids_count,
                            struct network *network, struct usage_sum *sum)
{
    if (!table->sockets_looked)
        sockets_look(&table->sockets);
    table->sockets_looked = true;
    bool known = network_look(network, &table->sockets, pids, pids_count);
    sum->received_bytes = known ? network->received_bytes : -1;
    sum->sent_bytes = known ? network->sent_bytes : -1;
}

bool usage_of(struct usage_table *table, pid_t shim, struct network *network,
              struct usage_sum *sum)
{
    const struct process *root = find(table, shim);
    *sum = (struct usage_sum){0};
    if (!root)
        return false;
    int64_t ticks = root->waited_ticks, pages = 0;
    pid_t *pids = alloc_array((size_t)table->count, sizeof(*pids));
    int pids_count = 0;
    add_disk(shim, sum);
    for (int i = 0; i < table->count; i++) {
        const struct process *process = &table->list[i];
        if (!descends(table, process, shim))
            continue;
        ticks += process->ticks + process->waited_ticks;
        pages += process->resident_pages;
        add_disk(process->pid, sum);
        pids[pids_count++] = process->pid;
    }
    look_at_network(table, pids, pids_count, network, sum);
    free(pids);
    sum->cpu_seconds = (double)ticks / (double)sysconf(_SC_CLK_TCK);
    sum->memory_bytes = pages * sysconf(_SC_PAGESIZE);
    return true;
}
