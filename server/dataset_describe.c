/*
 * dataset_describe.c - what a folder of any format holds, as the program that trains sees it.
 *
 * That program reads the files, beside this one and in a process of its own, so that the
 * control plane neither links decoders nor falls with one.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "server/dataset.h"

#define DESCRIBE_OUTPUT_BYTES (64 << 20)
#define READ_BYTES 65536
#define LOOK_MS 200      /* whether it is to end */
#define DESCRIBE_DEPTH 8 /* folders in folders */

static atomic_bool ending;

void dataset_describe_end(void)
{
    atomic_store(&ending, true);
}

bool dataset_describe_goes_on(struct error *err)
{
    return !atomic_load(&ending) || fail(err, UNAVAILABLE, "the server is ending");
}

/* --- the files --- */

struct dataset_file *dataset_files_more(struct dataset_files *files)
{
    files->files = alloc_grow(files->files, files->files_count, &files->files_capacity,
                              sizeof(*files->files));
    return &files->files[files->files_count++];
}

static bool add_file(const char *path, const char *name, struct dataset_files *files,
                     struct error *err)
{
    if (files->files_count == DATASET_FILES_MAX)
        return fail(err, EXHAUSTED, "more than %d files", DATASET_FILES_MAX);
    if (strlen(name) >= sizeof(files->files[0].name))
        return fail(err, INVALID, "the name %s is too long", path);
    struct dataset_file *file = dataset_files_more(files);
    snprintf(file->name, sizeof(file->name), "%s", name);
    return dataset_files_sha256(path, file->sha256, &file->bytes, err);
}

/* All files below `folder`, whose name within the dataset is `inside` ("" for itself). */
static bool list(const char *folder, const char *inside, int depth, struct dataset_files *files,
                 struct error *err)
{
    struct dirent **entries;
    char *path = alloc_printf("%s/%s", folder, inside);
    int count = scandir(path, &entries, NULL, alphasort);
    bool ok = count >= 0 || error_errno(err, NOT_FOUND, "cannot read the folder %s", path);
    if (ok && depth > DESCRIBE_DEPTH)
        ok = fail(err, INVALID, "%s: more than %d folders in folders", path, DESCRIBE_DEPTH);
    free(path);
    for (int i = 0; i < count; i++) {
        struct stat info;
        const char *entry = entries[i]->d_name;
        char *name = alloc_printf("%s%s%s", inside, *inside ? "/" : "", entry);
        path = alloc_printf("%s/%s", folder, name);
        bool own = *entry == '.' || (!*inside && !strcmp(entry, "dataset.json"));
        if (ok && !own && stat(path, &info) == 0) {
            if (S_ISDIR(info.st_mode))
                ok = list(folder, name, depth + 1, files, err);
            else if (S_ISREG(info.st_mode))
                ok = add_file(path, name, files, err);
        }
        free(path);
        free(name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return ok;
}

/* --- the program that trains --- */

bool dataset_task(char path[PATH_MAX], struct error *err)
{
    static const char program[] = "trainyard-task";
    ssize_t size = readlink("/proc/self/exe", path, PATH_MAX - 1);
    char *slash = size > 0 ? memrchr(path, '/', (size_t)size) : NULL;
    if (!slash || (size_t)(slash + 1 - path) + sizeof(program) > PATH_MAX)
        return fail(err, INTERNAL, "cannot find this program's own folder");
    memcpy(slash + 1, program, sizeof(program));
    return true;
}

/* Takes all that the program prints, until it ends its output or its time is over. */
static bool read_output(int fd, struct str *output, uint64_t until_us)
{
    for (;;) {
        uint64_t now_us = clock_monotonic_us();
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (now_us >= until_us || output->size > DESCRIBE_OUTPUT_BYTES || atomic_load(&ending))
            return false;
        if (poll(&wait, 1, LOOK_MS) <= 0)
            continue;
        char *room = str_extend(output, READ_BYTES);
        ssize_t count = read(fd, room, READ_BYTES);
        output->size -= READ_BYTES - (size_t)(count > 0 ? count : 0);
        if (count == 0)
            return true;
        if (count < 0 && errno != EINTR)
            return false;
    }
}

static pid_t start(const char *path, const char *folder, int output)
{
    pid_t pid;
    posix_spawn_file_actions_t actions;
    const char *const args[] = {path, "dataset", folder, "--json", "--words", "100", NULL};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    bool ok = posix_spawn(&pid, path, &actions, NULL, (char *const *)args, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return ok ? pid : -1;
}

/* Runs it on a folder; what it prints is appended to `output`. */
static bool run(const char *folder, struct str *output, struct error *err)
{
    char path[PATH_MAX];
    int pipes[2], status = -1;
    if (!dataset_task(path, err))
        return false;
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return error_errno(err, EXHAUSTED, "cannot make a pipe");
    uint64_t until_us = clock_monotonic_us() + LIMIT_DESCRIBE_S * UINT64_C(1000000);
    pid_t pid = start(path, folder, pipes[1]);
    close(pipes[1]);
    bool whole = pid > 0 && read_output(pipes[0], output, until_us);
    close(pipes[0]);
    if (pid > 0 && !whole)
        kill(pid, SIGKILL);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!dataset_describe_goes_on(err))
        return false;
    if (pid > 0 && !whole && clock_monotonic_us() >= until_us)
        return fail(err, DEADLINE, "reading it took longer than %d seconds", LIMIT_DESCRIBE_S);
    if (!whole || !WIFEXITED(status) || WEXITSTATUS(status) == 127)
        return fail(err, INTERNAL, "%s could not read %s", path, folder);
    return true;
}

/* What it found, or the error that it met. */
static bool take(const json_t *root, struct dataset_files *files, struct error *err)
{
    const char *format, *text, *pointer;
    json_int_t train, validation, test;
    json_t *columns;
    int code;
    if (json_unpack((json_t *)root, "{s:{s:i, s:s, s:s}}", "error", "code", &code, "text",
                    &text, "pointer", &pointer) == 0) {
        if (!*pointer)
            return fail(err, (enum error_code)code, "%s", text);
        /* Only a job's spec can say how to read it. */
        snprintf(files->format, sizeof(files->format), "%s", "by the spec");
        return true;
    }
    if (json_unpack((json_t *)root, "{s:s, s:I, s:I, s:I, s:o}", "format", &format, "train",
                    &train, "validation", &validation, "test", &test, "columns", &columns) != 0)
        return fail(err, INTERNAL, "trainyard-task gave an answer that makes no sense");
    snprintf(files->format, sizeof(files->format), "%s", format);
    files->train_count = train;
    files->validation_count = validation;
    files->test_count = test;
    files->columns = json_incref(columns);
    return true;
}

bool dataset_describe(const char *folder, struct dataset_files *files, struct error *err)
{
    struct str output = {0};
    if (!list(folder, "", 0, files, err))
        return false;
    bool ok = run(folder, &output, err);
    if (ok) {
        json_t *root = json_loadb(str_text(&output), output.size, 0, NULL);
        ok = take(root, files, err);
        json_decref(root);
    }
    str_release(&output);
    return ok;
}
