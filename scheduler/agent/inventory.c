/* inventory.c - affinity, /proc and cgroups, version 1 and 2. */

#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "scheduler/agent/inventory.h"

/* The first line of a file, without its end; false when there is none. */
static bool line_read(const char *path, char *out, size_t out_size)
{
    FILE *file = fopen(path, "re");
    bool ok = file && fgets(out, (int)out_size, file);
    if (file)
        fclose(file);
    if (ok)
        out[strcspn(out, "\n")] = '\0';
    return ok;
}

/*
 * Reads `file` of this process's cgroup: version 2 for an empty `controller`.  In a container
 * the path that /proc tells may not be visible; then its root is the cgroup itself.
 */
static bool cgroup_read(const char *controller, const char *file, char *out, size_t out_size)
{
    char line[500];
    bool found = false;
    FILE *list = fopen("/proc/self/cgroup", "re");
    while (list && !found && fgets(line, sizeof(line), list)) {
        line[strcspn(line, "\n")] = '\0';
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        if (strcmp(names + 1, controller) != 0)
            continue;
        const char *slash = *controller ? "/" : "";
        char *full = alloc_printf("/sys/fs/cgroup%s%s%s/%s", slash, controller, path, file);
        char *root = alloc_printf("/sys/fs/cgroup%s%s/%s", slash, controller, file);
        found = line_read(full, out, out_size) || line_read(root, out, out_size);
        free(full);
        free(root);
    }
    if (list)
        fclose(list);
    return found;
}

int64_t inventory_cpu_millis(void)
{
    cpu_set_t set;
    int64_t millis = 1000 * sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        millis = 1000 * (int64_t)CPU_COUNT(&set);

    char text[100];
    long long quota = 0, period = 0;
    if (cgroup_read("", "cpu.max", text, sizeof(text))) {
        if (sscanf(text, "%lld %lld", &quota, &period) != 2)
            quota = 0; /* "max" */
    } else if (cgroup_read("cpu", "cpu.cfs_quota_us", text, sizeof(text))) {
        quota = strtoll(text, NULL, 10);
        if (cgroup_read("cpu", "cpu.cfs_period_us", text, sizeof(text)))
            period = strtoll(text, NULL, 10);
    }
    if (quota > 0 && period > 0 && quota * 1000 / period < millis)
        millis = quota * 1000 / period;
    return millis > 0 ? millis : 1000;
}

int64_t inventory_memory_bytes(void)
{
    int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    char text[100];
    if (cgroup_read("", "memory.max", text, sizeof(text)) ||
        cgroup_read("memory", "memory.limit_in_bytes", text, sizeof(text))) {
        long long limit = strtoll(text, NULL, 10); /* 0 for "max" */
        if (limit > 0 && limit < bytes)
            bytes = limit;
    }
    return bytes;
}

const char *inventory_boot_id(char *out, size_t out_size)
{
    if (!line_read("/proc/sys/kernel/random/boot_id", out, out_size))
        out[0] = '\0';
    return out;
}

const char *inventory_host(const char *server, char *out, size_t out_size)
{
    const struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    struct sockaddr_storage own;
    socklen_t size = sizeof(own);
    char *host = alloc_text(server);
    char *colon = strrchr(host, ':');
    snprintf(out, out_size, "127.0.0.1");
    if (colon)
        *colon++ = '\0';
    /* Connecting a datagram socket sends nothing: it only chooses the way. */
    if (colon && strncmp(server, "local:", 6) != 0 &&
        getaddrinfo(host, colon, &wanted, &found) == 0) {
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
            getsockname(fd, (struct sockaddr *)&own, &size) == 0)
            getnameinfo((struct sockaddr *)&own, size, out, (socklen_t)out_size, NULL, 0,
                        NI_NUMERICHOST);
        if (fd >= 0)
            close(fd);
        freeaddrinfo(found);
    }
    free(host);
    return out;
}
