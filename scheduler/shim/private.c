/* private.c - mounts that one task sees. */

#include "scheduler/shim/private.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COVER_FLAGS (MS_NOSUID | MS_NODEV)
#define TMP_FOLDER "tmp"
#define PLACE_MODE 0711 /* of what is made to mount on: to pass, not to list */

bool private_add(struct private_paths *paths, const char *path)
{
    if (paths->count == PRIVATE_PATHS_MAX)
        return false;
    paths->list[paths->count++] = path;
    return true;
}

/* --- the namespace --- */

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* An ordinary user may mount in a user namespace alone.  He is himself there, and has no
 * capability any more once he runs a program. */
static bool unshare_user(void)
{
    char users[40], groups[40];
    snprintf(users, sizeof(users), "%u %u 1", geteuid(), geteuid());
    snprintf(groups, sizeof(groups), "%u %u 1", getegid(), getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/uid_map", users) && write_text("/proc/self/gid_map", groups);
}

/* Mounts of the machine still come in; none goes out. */
static bool unshare_mounts(void)
{
    return (geteuid() == 0 ? unshare(CLONE_NEWNS) == 0 : unshare_user()) &&
           mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0;
}

/* In a child: what it is allowed to is not known before it was tried, and stays. */
int private_probe(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare_mounts() && mount("tmpfs", "/tmp", "tmpfs", COVER_FLAGS, "size=1m") == 0
                  ? 0
                  : errno);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid < 0 ? errno : WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

/* --- covers --- */

struct shown { /* something that is to be seen through a cover */
    const char *path;
    int fd; /* -1: it is not there */
};

struct shown_list {
    struct shown list[2 * PRIVATE_PATHS_MAX];
    int count;
};

static void shown_open(struct shown_list *shown, const struct private_paths *paths)
{
    for (int i = 0; i < paths->count; i++)
        shown->list[shown->count++] =
            (struct shown){paths->list[i], open(paths->list[i], O_PATH | O_CLOEXEC)};
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Something to mount on, with the folders above it. */
static bool place_make(const char *path, bool is_folder)
{
    char part[4096];
    int size = snprintf(part, sizeof(part), "%s", path);
    if (size >= (int)sizeof(part)) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, PLACE_MODE) && errno != EEXIST)
            return false;
        *slash = '/';
    }
    if (is_folder)
        return mkdir(path, PLACE_MODE) == 0 || errno == EEXIST;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Puts it back to its path, unless it can be seen, or is what was covered. */
static bool show(const struct shown *shown, const struct stat *covered)
{
    struct stat info, seen;
    char from[40];
    if (shown->fd < 0 || fstat(shown->fd, &info) || is_same(&info, covered) ||
        (stat(shown->path, &seen) == 0 && is_same(&info, &seen)))
        return true;
    snprintf(from, sizeof(from), "/proc/self/fd/%d", shown->fd);
    return place_make(shown->path, S_ISDIR(info.st_mode)) &&
           mount(from, shown->path, NULL, MS_BIND | MS_REC, NULL) == 0;
}

/* Covers the folder `path` with `with`, or with nothing. */
static bool cover(const char *path, const char *with, const struct shown_list *shown)
{
    struct stat covered;
    if (stat(path, &covered) || !S_ISDIR(covered.st_mode))
        return true;
    bool ok = with ? mount(with, path, NULL, MS_BIND, NULL) == 0
                   : mount("tmpfs", path, "tmpfs", COVER_FLAGS, "mode=0711,size=1m") == 0;
    for (int i = 0; i < shown->count && ok; i++)
        ok = show(&shown->list[i], &covered);
    return ok && (with || mount(NULL, path, NULL,
                                MS_REMOUNT | MS_BIND | MS_RDONLY | COVER_FLAGS, NULL) == 0);
}

static void shown_close(struct shown_list *shown)
{
    for (int i = 0; i < shown->count; i++) {
        if (shown->list[i].fd >= 0)
            close(shown->list[i].fd);
    }
}

static bool hide_all(const struct private_view *view)
{
    bool ok = true;
    for (int i = 0; i < view->hide.count && ok; i++) {
        struct shown_list shown = {.count = 0};
        shown_open(&shown, &view->show);
        ok = cover(view->hide.list[i], NULL, &shown);
        shown_close(&shown);
    }
    return ok;
}

/* What the job names is found with the rights that its task will have. */
static void named_open(struct shown_list *shown, const struct private_paths *named, uid_t user)
{
    if (user) {
        setfsgid(user);
        setfsuid(user);
    }
    shown_open(shown, named);
    setfsuid(geteuid());
    setfsgid(getegid());
}

/* After what is hidden, so that nothing of that is shown for being named. */
static bool cover_tmp(const struct private_view *view, const char *tmp, uid_t user)
{
    static const char *const places[] = {"/tmp", "/var/tmp"};
    struct shown own_place = {tmp, open(tmp, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    char from[40];
    bool ok = own_place.fd >= 0;
    snprintf(from, sizeof(from), "/proc/self/fd/%d", own_place.fd);
    for (int i = 0; i < ARRAY_LEN(places) && ok; i++) {
        struct shown_list shown = {.count = 0};
        named_open(&shown, &view->named, user);
        shown_open(&shown, &view->show);
        ok = cover(places[i], from, &shown);
        shown_close(&shown);
    }
    if (own_place.fd >= 0)
        close(own_place.fd);
    return ok;
}

static bool cover_memory(const struct private_view *view)
{
    char options[60] = "mode=1777";
    if (!view->memory || access("/dev/shm", F_OK))
        return true;
    if (view->memory_bytes)
        snprintf(options, sizeof(options), "mode=1777,size=%lld",
                 (long long)view->memory_bytes);
    return mount("tmpfs", "/dev/shm", "tmpfs", COVER_FLAGS, options) == 0;
}

/* A task that is started again may have put something else there: nothing of that is changed.
 */
bool private_make_tmp(uid_t user)
{
    struct stat info;
    if (mkdir(TMP_FOLDER, 0700) == 0)
        return chmod(TMP_FOLDER, 01777) == 0 && (!user || chown(TMP_FOLDER, user, user) == 0);
    if (errno == EEXIST && lstat(TMP_FOLDER, &info) == 0 && !S_ISDIR(info.st_mode))
        errno = ENOTDIR;
    return errno == EEXIST;
}

/* 0; an errno above 0: the system does not let it, nothing has changed; below 0: it failed half
 * way. */
static int enter(const struct private_view *view, const char *tmp, uid_t user, gid_t group)
{
    int able = private_probe();
    if (able)
        return able;
    if (user && setgroups(1, &group))
        return errno;
    mode_t mask = umask(022);
    bool ok =
        unshare_mounts() && hide_all(view) && cover_tmp(view, tmp, user) && cover_memory(view);
    int why = errno ? errno : EPERM;
    umask(mask);
    return ok ? 0 : -why;
}

bool private_become(const struct private_view *view, const char *folder, uid_t user,
                    gid_t group)
{
    char tmp[4096];
    if (snprintf(tmp, sizeof(tmp), "%s/" TMP_FOLDER, folder) >= (int)sizeof(tmp)) {
        errno = ENAMETOOLONG;
        return false;
    }
    int able = view->wanted ? enter(view, tmp, user, group) : 0;
    if (able > 0)
        dprintf(
            2,
            "[trainyard: this machine gives tasks no view of their own (%s): /tmp is shared, "
            "$TMPDIR is the task's]\n",
            strerror(able));
    if ((able > 0 || !view->wanted) && setenv("TMPDIR", tmp, 1))
        return false;
    errno = -able;
    return able >= 0 && chdir(folder) == 0; /* not to what is below a cover */
}
