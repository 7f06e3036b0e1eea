/* users.c - a range of user ids, and what belongs to whom. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/path.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/folders.h"
#include "scheduler/agent/program.h"
#include "scheduler/agent/users.h"

#define UID_MAX INT64_C(4294967294)

/* --- the range --- */

static bool refuse_accounts(int64_t first, int64_t last, struct error *err)
{
    const struct passwd *account;
    bool ok = true;
    setpwent();
    while (ok && (account = getpwent())) {
        if (account->pw_uid >= first && account->pw_uid <= last)
            ok = fail(err, INVALID,
                      "--task-user is %lld-%lld, in which %u is the account %.60s; allowed: "
                      "ids that nobody has",
                      (long long)first, (long long)last, account->pw_uid, account->pw_name);
    }
    endpwent();
    return ok;
}

bool users_parse(const char *text, struct users *users, struct error *err)
{
    long long first, last;
    int used = 0;
    *users = (struct users){0};
    if (!text)
        return true;
    if (sscanf(text, "%10lld-%10lld%n", &first, &last, &used) != 2 || text[used] || first < 1 ||
        last <= first || last >= UID_MAX || last - first > USERS_MAX)
        return fail(err, INVALID,
                    "--task-user is '%.60s', allowed: FIRST-LAST, user ids from 1 to %lld, at "
                    "least 2 and at most %d",
                    text, (long long)UID_MAX - 1, USERS_MAX + 1);
    if (geteuid() != 0)
        return fail(err, PRECONDITION,
                    "--task-user is '%.60s', but only root can start tasks as other users, and "
                    "this is user %u",
                    text, geteuid());
    if (!refuse_accounts(first, last, err))
        return false;
    *users = (struct users){(uid_t)first, (int)(last - first)};
    return true;
}

const char *users_text(const struct users *users, char *out, size_t out_size, bool *warn)
{
    *warn = !users->count && geteuid() == 0;
    if (users->count)
        snprintf(out, out_size, "tasks run as users %u to %u", users->group + 1,
                 users->group + (uid_t)users->count);
    else
        snprintf(out, out_size, "tasks run as user %u, as the agent does%s", geteuid(),
                 *warn ? ": give --task-user FIRST-LAST for users of their own" : "");
    return out;
}

uid_t users_first(const struct users *users, int64_t job)
{
    return users->group + 1 + (uid_t)((uint64_t)job % (uint64_t)users->count);
}

uid_t users_next(const struct users *users, uid_t uid)
{
    return uid >= users->group + (uid_t)users->count ? users->group + 1 : uid + 1;
}

uid_t users_of(const json_t *start)
{
    return (uid_t)files_int(start, "user");
}

uid_t users_group(const json_t *start)
{
    return (uid_t)files_int(start, "group");
}

/* --- trees --- */

/* What becomes of an entry: it gets owner and group (-1: as it is), and these bits of mode; a
 * folder `pass` beside. */
struct change {
    uid_t owner;
    gid_t group;
    mode_t add;
};

/* `fd` may be opened by O_PATH.  Files with several names stay: another may be elsewhere. */
static bool entry_change(int fd, const struct change *change, struct error *err)
{
    char path[40];
    struct stat info;
    if (fstat(fd, &info))
        return error_errno(err, INTERNAL, "cannot look at a file of the task");
    if (!S_ISDIR(info.st_mode) && (info.st_nlink > 1 || S_ISLNK(info.st_mode)))
        return true;
    mode_t mode = (info.st_mode & 0777) | change->add;
    if (S_ISDIR(info.st_mode) && change->add)
        mode |= (change->add >> 2) & 0111;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return (fchownat(fd, "", change->owner, change->group, AT_EMPTY_PATH) == 0 &&
            (!change->add || chmod(path, mode) == 0)) ||
           error_errno(err, INTERNAL, "cannot give a file to the task's user");
}

/* A folder last, after all that is below it. */
static bool tree_change(int parent, const char *name, int depth, const struct change *change,
                        struct error *err)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, INTERNAL, "cannot open the folder %s", name);
    DIR *folder = fdopendir(fd);
    struct dirent *entry;
    bool ok = folder != NULL || error_errno(err, INTERNAL, "cannot read the folder %s", name);
    while (ok && (entry = readdir(folder))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        struct stat info;
        int below = openat(fd, entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0 || fstat(below, &info))
            ok = errno == ENOENT || error_errno(err, INTERNAL, "cannot open %s", entry->d_name);
        else if (!S_ISDIR(info.st_mode))
            ok = entry_change(below, change, err);
        else if (depth < PATH_DEPTH_MAX)
            ok = tree_change(fd, entry->d_name, depth + 1, change, err);
        if (below >= 0)
            close(below);
    }
    ok = ok && entry_change(fd, change, err);
    if (folder)
        closedir(folder);
    else
        close(fd);
    return ok;
}

static bool folder_own(const char *path, uid_t owner, gid_t group, mode_t mode,
                       struct error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool ok = fd >= 0 && fchown(fd, owner, group) == 0 && fchmod(fd, mode) == 0;
    if (!ok)
        error_errno(err, INTERNAL, "cannot give %s to user %u", path, owner);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* --- a task's --- */

/*
 * Lets the group pass through the folders above `path`: those in `yard` and `agent_folder` are
 * ours to change.
 */
static bool reach(const char *path, const char *yard, const char *agent_folder, gid_t group,
                  struct error *err)
{
    char *part = alloc_text(path);
    bool ok = true;
    for (char *slash = strchr(part + 1, '/'); slash && ok; slash = strchr(slash + 1, '/')) {
        struct stat info;
        *slash = '\0';
        if (stat(part, &info))
            ok = error_errno(err, INTERNAL, "cannot look at %s", part);
        else if (!(info.st_mode & 01) && !(info.st_gid == group && (info.st_mode & 010)))
            ok = files_is_within(part, yard) || files_is_within(part, agent_folder)
                     ? folder_own(part, info.st_uid, group, (info.st_mode & 07707) | 010, err)
                     : fail(err, DENIED,
                            "tasks cannot reach %s: %s has mode %03o; allow others to pass it "
                            "(chmod o+x), or keep the folder elsewhere",
                            path, part, (unsigned)info.st_mode & 0777);
        *slash = '/';
    }
    free(part);
    return ok;
}

static bool own_below(const char *folder, const char *name, uid_t user, struct error *err)
{
    char *path = alloc_printf("%s/%s", folder, name);
    const struct change change = {user, user, 0};
    bool ok = tree_change(AT_FDCWD, path, 1, &change, err);
    free(path);
    return ok;
}

/* For the user to read, not to change. */
static bool file_give(const char *folder, const char *name, uid_t user, struct error *err)
{
    char *path = alloc_printf("%s/%s", folder, name);
    bool ok = (chown(path, 0, user) == 0 && chmod(path, 0640) == 0) ||
              error_errno(err, INTERNAL, "cannot give %s to user %u", path, user);
    free(path);
    return ok;
}

/* What a program writes into is its own; what the agent and the shim write is theirs. */
static bool give_attempt(const char *folder, const json_t *start, uid_t user, struct error *err)
{
    if (json_object_get(start, "program"))
        return own_below(folder, PROGRAM_WORK, user, err) &&
               own_below(folder, PROGRAM_OUT, user, err) &&
               own_below(folder, PROGRAM_SECRETS, user, err) &&
               folder_own(folder, 0, user, 0710, err);
    /* A model's task writes beside the shim: the sticky bit keeps it from the shim's files. */
    return file_give(folder, "spec.json", user, err) &&
           (!*files_text(start, "certificate") ||
            file_give(folder, files_text(start, "certificate"), user, err)) &&
           folder_own(folder, 0, user, 01770, err);
}

static bool give_checkpoints(const char *job_folder, uid_t user, struct error *err)
{
    char *path = alloc_printf("%s/checkpoints", job_folder);
    bool ok = files_make_folder(path, err) && own_below(job_folder, "checkpoints", user, err) &&
              folder_own(job_folder, 0, user, 0710, err);
    free(path);
    return ok;
}

/* Once: a dataset is not changed afterwards. */
static bool share_dataset(const char *dataset, gid_t group, struct error *err)
{
    struct stat info;
    const struct change change = {(uid_t)-1, group, 040};
    if (stat(dataset, &info) || (info.st_mode & 05) == 05 ||
        (info.st_gid == group && (info.st_mode & 050) == 050))
        return true; /* one that is missing is the task's to complain of */
    return tree_change(AT_FDCWD, dataset, 1, &change, err);
}

bool users_give(const char *folder, const json_t *start, struct error *err)
{
    uid_t user = users_of(start);
    gid_t group = users_group(start);
    if (!user)
        return true;
    const char *job_folder = files_text(start, "job_folder");
    const char *dataset = files_text(start, "dataset_folder");
    char *yard = folders_yard(start);
    char *agent_folder = files_above(folder, 2); /* DIR/attempts/NAME */
    bool ok = (!folders_are_own(start) || own_below(folder, "jobs", user, err)) &&
              (!*job_folder || give_checkpoints(job_folder, user, err)) &&
              (!*dataset || share_dataset(dataset, group, err)) &&
              reach(folder, yard, agent_folder, group, err) &&
              (!*job_folder || reach(job_folder, yard, agent_folder, group, err)) &&
              (!*dataset || reach(dataset, yard, agent_folder, group, err)) &&
              give_attempt(folder, start, user, err);
    free(agent_folder);
    free(yard);
    return ok;
}

void users_take_back(const char *folder, const json_t *start, bool last)
{
    struct error err; /* where it fails there is nothing to take back */
    if (users_of(start))
        (void)!folder_own(folder, 0, 0, 0700, &err);
    if (users_of(start) && last)
        (void)!folder_own(files_text(start, "job_folder"), 0, 0, 0700, &err);
}
