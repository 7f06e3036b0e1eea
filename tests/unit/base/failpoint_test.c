/* failpoint_test.c - the variable, and who dies. */

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "tests/unit/test.h"

static bool arms(const char *text)
{
    if (text)
        setenv(FAILPOINT_VARIABLE, text, 1);
    else
        unsetenv(FAILPOINT_VARIABLE);
    bool ok = failpoint_arm();
    unsetenv(FAILPOINT_VARIABLE);
    return ok;
}

/* Whether a child that passes the failpoint so many times is killed. */
static bool dies(const char *text, const char *name, int times)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (!arms(text))
            _exit(1);
        for (int i = 0; i < times; i++)
            failpoint(name);
        _exit(0);
    }
    int status;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

TEST(failpoint_is_off_without_the_variable)
{
    CHECK(!dies(NULL, "task.step", 100));
    CHECK(!dies("", "task.step", 100));
    CHECK(!dies("task.claimed=kill@1", "task.step", 100));
    CHECK(arms(NULL));
    CHECK(!atomic_load(&failpoint_armed));
}

TEST(failpoint_kills_at_the_nth_passing)
{
    CHECK(!dies("task.step=kill@3", "task.step", 2));
    CHECK(dies("task.step=kill@3", "task.step", 3));
    CHECK(dies("  control.begin=kill@1 task.step=kill@12 ", "task.step", 12));
}

TEST(failpoint_kills_whoever_makes_the_file)
{
    char path[] = "/tmp/failpoint.XXXXXX", text[100];
    int fd = mkstemp(path);
    snprintf(text, sizeof(text), "task.step=kill@1,%s", path);
    CHECK(fd >= 0);
    close(fd);
    CHECK(!dies(text, "task.step", 5)); /* it is there */
    CHECK_INT(unlink(path), 0);
    CHECK(dies(text, "task.step", 5));
    CHECK(!dies(text, "task.step", 5));
    CHECK_INT(unlink(path), 0);
}

TEST(failpoint_says_what_makes_no_sense)
{
    static const char *const bad[] = {
        "task.step",          "task.stepp=kill@1", "task.step=kill",
        "task.step=kill@0",   "task.step=kill@1x", "task.step=stop@1",
        "task.step=kill@-1,", "=kill@1",           "x"};
    int saved = dup(2), null = open("/dev/null", O_WRONLY);
    dup2(null, 2);
    for (int i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!arms(bad[i]));
    dup2(saved, 2);
    close(saved);
    close(null);
    CHECK(arms(NULL));
}
