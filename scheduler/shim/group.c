/* group.c - the task's processes: a cgroup, or a walk over /proc. */

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/shim/group.h"

struct process {
    pid_t pid;
    pid_t parent;
    int64_t resident_bytes;
};

static char folder[512]; /* of the cgroup, "" when there is none */
static int64_t memory_limit;
static bool kernel_limits; /* memory.max is set */

/* --- the cgroup --- */

static bool group_write(const char *file, const char *text)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return ok;
}

/* The path of this process in the v2 hierarchy ("/" and more), or false. */
static bool own_path(char *out, size_t out_size)
{
    char line[400];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, out_size, "%s", strcmp(line + 3, "/") == 0 ? "" : line + 3);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

void group_open(const char *name, int64_t memory_bytes)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char path[400], probe[600];
    memory_limit = memory_bytes;
    if (!name || !own_path(path, sizeof(path)))
        return;
    for (int i = 0; i < ARRAY_LEN(roots); i++) {
        snprintf(probe, sizeof(probe), "%s%s/cgroup.procs", roots[i], path);
        int length =
            snprintf(folder, sizeof(folder), "%s%s/trainyard-%s", roots[i], path, name);
        if (length < (int)sizeof(folder) && access(probe, W_OK) == 0 &&
            mkdir(folder, 0755) == 0)
            break;
        folder[0] = '\0';
    }
    if (!folder[0] || !memory_bytes)
        return;
    char limit[32];
    snprintf(limit, sizeof(limit), "%lld", (long long)memory_bytes);
    kernel_limits = group_write("memory.max", limit);
    if (kernel_limits) /* else the kernel takes one process and leaves the rest hanging */
        (void)group_write("memory.oom.group", "1");
}

const char *group_folder(void)
{
    return folder;
}

void group_enter(void)
{
    if (folder[0])
        (void)group_write("cgroup.procs", "0");
}

bool group_oom(void)
{
    char path[600], word[64];
    long long count;
    bool oom = false;
    if (!kernel_limits)
        return false;
    snprintf(path, sizeof(path), "%s/memory.events", folder);
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%63s %lld", word, &count) == 2)
        oom = oom || (strcmp(word, "oom_kill") == 0 && count > 0);
    if (file)
        fclose(file);
    return oom;
}

void group_close(void)
{
    if (folder[0])
        rmdir(folder);
}

/* --- the walk --- */

static bool process_read(pid_t pid, struct process *process)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (size <= 0)
        return false;
    text[size] = '\0';
    const char *rest = strrchr(text, ')'); /* the name may hold anything */
    int parent;
    long long pages;
    if (!rest ||
        sscanf(rest + 1,
               " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
               "%*d %*u %*u %lld",
               &parent, &pages) != 2)
        return false;
    *process = (struct process){pid, (pid_t)parent, pages * sysconf(_SC_PAGESIZE)};
    return true;
}

/* All descendants of this process, first in the list; the caller frees it. */
static struct process *descendants(int *count)
{
    struct process *all = NULL;
    int total = 0, room = 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0)
            continue;
        if (total == room) {
            int more = room ? room * 2 : 256;
            struct process *moved = realloc(all, (size_t)more * sizeof(*all));
            if (!moved)
                break;
            all = moved;
            room = more;
        }
        total += process_read(pid, &all[total]);
    }
    if (proc)
        closedir(proc);

    int ours = 0; /* all[0 .. ours) are; each may be the parent of others */
    for (int parent = -1; parent < ours; parent++) {
        pid_t pid = parent < 0 ? getpid() : all[parent].pid;
        for (int i = ours; i < total; i++) {
            if (all[i].parent != pid)
                continue;
            struct process found = all[i];
            all[i] = all[ours];
            all[ours++] = found;
        }
    }
    *count = ours;
    return all;
}

/* Stops all first, round after round, so that none forks away while others are killed. */
static void walk_kill(void)
{
    int count, before = -1;
    struct process *all = descendants(&count);
    for (int round = 0; round < 20 && count != before; round++) {
        for (int i = 0; i < count; i++)
            kill(all[i].pid, SIGSTOP);
        free(all);
        before = count;
        all = descendants(&count);
    }
    for (int i = 0; i < count; i++)
        kill(all[i].pid, SIGKILL);
    free(all);
}

void group_kill(void)
{
    if (folder[0])
        (void)group_write("cgroup.kill", "1");
    walk_kill(); /* also what has moved to another cgroup */
}

bool group_needs_watch(void)
{
    return memory_limit && !kernel_limits;
}

int64_t group_memory(void)
{
    int count;
    int64_t bytes = 0;
    struct process *all = descendants(&count);
    for (int i = 0; i < count; i++)
        bytes += all[i].resident_bytes;
    free(all);
    return bytes;
}
