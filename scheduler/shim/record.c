/* record.c - small JSON files, written so that they are whole. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "scheduler/shim/record.h"

#define EXIT_BYTES 2000
#define EXIT_ASIDE "exit.json.tmp"

static int reserved = -1; /* EXIT_ASIDE, with its room */

int64_t record_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int file_open_aside(const char *aside)
{
    unlink(aside); /* a task may write here, too: nothing of its is followed */
    return open(aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Writes `text` to `fd`, which has the name `aside`, and gives it its name.  Takes `fd`. */
static bool file_finish(int fd, const char *aside, const char *name, const char *text,
                        bool synced)
{
    size_t size = strlen(text);
    bool ok = pwrite(fd, text, size, 0) == (ssize_t)size && ftruncate(fd, (off_t)size) == 0 &&
              (!synced || fsync(fd) == 0);
    ok = close(fd) == 0 && ok;
    failpoint("shim.record_before_rename");
    ok = ok && rename(aside, name) == 0;
    failpoint("shim.record_after_rename");
    int folder = synced ? open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder >= 0) {
        ok = fsync(folder) == 0 && ok;
        close(folder);
    }
    return ok;
}

static bool file_publish(const char *name, const char *text, bool synced)
{
    char aside[64];
    snprintf(aside, sizeof(aside), "%s.tmp", name);
    int fd = file_open_aside(aside);
    return fd >= 0 && file_finish(fd, aside, name, text, synced);
}

/* Of the process: field 22 of its stat, in clock ticks since boot. */
static unsigned long long start_time_of(pid_t pid)
{
    char path[64], text[1024];
    unsigned long long ticks = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file)
        fclose(file);
    text[size] = '\0';
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1,
                        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                        "%*d %*d %llu",
                        &ticks) != 1)
        return 0;
    return ticks;
}

static void boot_id_read(char *out, size_t out_size)
{
    out[0] = '\0';
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && !fgets(out, (int)out_size, file))
        out[0] = '\0';
    if (file)
        fclose(file);
    out[strcspn(out, "\n")] = '\0';
}

bool record_identity_write(const struct record_identity *identity)
{
    char boot_id[64], text[1200];
    boot_id_read(boot_id, sizeof(boot_id));
    snprintf(text, sizeof(text),
             "{\"boot_id\": \"%s\", \"pid\": %d, \"start_time\": %llu, \"cookie\": \"%s\", "
             "\"cgroup\": \"%s\", \"task_pid\": %d, \"started_us\": %lld}\n",
             boot_id, (int)identity->pid, start_time_of(identity->pid), identity->cookie,
             identity->cgroup, (int)identity->task_pid, (long long)identity->started_us);
    /* What is added about the task is of no use after a power cut, which ends the task. */
    return file_publish("shim.json", text, !identity->task_pid);
}

/* `text` as the inside of a JSON string. */
static void json_escape(const char *text, char *out, size_t out_size)
{
    size_t used = 0;
    for (; *text && used + 8 < out_size; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            out[used++] = '\\';
        if (c < 0x20 || c > 0x7e)
            used += (size_t)snprintf(out + used, out_size - used, "\\u%04x", c);
        else
            out[used++] = (char)c;
    }
    out[used] = '\0';
}

bool record_exit_reserve(void)
{
    reserved = file_open_aside(EXIT_ASIDE);
    if (reserved < 0)
        return false;
    errno = posix_fallocate(reserved, 0, EXIT_BYTES);
    if (!errno && fsync(reserved) == 0)
        return true;
    unlink(EXIT_ASIDE);
    return false;
}

/* Whether the name is still that of the file with the room. */
static bool reserved_is_there(void)
{
    struct stat file, name;
    return reserved >= 0 && fstat(reserved, &file) == 0 && lstat(EXIT_ASIDE, &name) == 0 &&
           file.st_ino == name.st_ino && file.st_dev == name.st_dev;
}

bool record_exit_write(const struct record_exit *record)
{
    char error[1200], text[EXIT_BYTES];
    json_escape(record->error ? record->error : "", error, sizeof(error));
    snprintf(text, sizeof(text),
             "{\"code\": %d, \"signal\": %d, \"oom\": %s, \"killed\": %s, \"terminated\": %s, "
             "\"refused\": %s, \"started_us\": %lld, \"ended_us\": %lld, \"cpu_us\": %lld, "
             "\"memory_bytes\": %lld, "
             "\"error\": \"%s\"}\n",
             record->code, record->signal, record->oom ? "true" : "false",
             record->killed ? "true" : "false", record->terminated ? "true" : "false",
             record->refused ? "true" : "false", (long long)record->started_us,
             (long long)record->ended_us, (long long)record->cpu_us,
             (long long)record->memory_bytes, error);
    int fd = reserved;
    bool room = reserved_is_there();
    reserved = -1; /* what did not work once is not tried again */
    if (fd >= 0 && !room)
        close(fd);
    return room ? file_finish(fd, EXIT_ASIDE, "exit.json", text, true)
                : file_publish("exit.json", text, true);
}
