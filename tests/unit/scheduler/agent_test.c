/*
 * agent_test.c - the agent with a real shim, and shell scripts for tasks: a job's "spec" is the
 * script.
 */
/* Faults of docs/reliability.md: F4 F30 F35 F49. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/log.h"
#include "scheduler/agent/agent.h"
#include "tests/unit/folder.h"
#include "tests/unit/scheduler/agent_server.h"

extern char **environ;

static char slow_shim[256]; /* a script for a shim on a slow disk; "": it is quick */

static const char *shim_path(void)
{
    static char path[4200];
    char own[4096];
    ssize_t size = readlink("/proc/self/exe", own, sizeof(own) - 1);
    CHECK(size > 0);
    own[size] = '\0';
    char *tests = strstr(own, "/tests/unit/");
    CHECK(tests);
    *tests = '\0';
    snprintf(path, sizeof(path), "%s/trainyard-shim", own);
    return path;
}

static void text_write(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    CHECK(fd >= 0);
    CHECK_INT(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static char *text_read(const char *path)
{
    struct str text = {0};
    char part[1000];
    FILE *file = fopen(path, "re");
    CHECK(file);
    size_t size;
    while ((size = fread(part, 1, sizeof(part), file)) > 0)
        str_add_bytes(&text, part, size);
    fclose(file);
    return str_take(&text);
}

/* Gone, or dead and not yet reaped by whoever has inherited it. */
static bool is_gone_now(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    char text[200] = "";
    bool read = file && fgets(text, sizeof(text), file);
    if (file)
        fclose(file);
    return !read || strstr(text, ") Z ");
}

/* Who is killed may take a moment to die. */
static bool process_is_gone(pid_t pid)
{
    for (int i = 0; i < 200; i++) {
        if (is_gone_now(pid))
            return true;
        usleep(10000);
    }
    return false;
}

/* Tasks get "train spec.json ..." and run in their folder. */
static const char *task_path(void)
{
    static char path[256];
    if (!path[0]) {
        snprintf(path, sizeof(path), "%s", folder_path("task"));
        text_write(path, "#!/bin/sh\necho \"$@\" >arguments\nexec sh ./spec.json\n", 0700);
    }
    return path;
}

/* The shim of agents that begin from now on waits so long (tests/slow_disk.c) for the disk; "":
 * not at all. */
static void shim_on_disk(const char *disk_ms)
{
    snprintf(slow_shim, sizeof(slow_shim), "%s", *disk_ms ? folder_path("slow-shim") : "");
    char *folder = alloc_text(shim_path());
    *strrchr(folder, '/') = '\0';
    char *script = alloc_printf(
        "#!/bin/sh\nSLOW_DISK_MS=%s exec %s/slow/trainyard-shim \"$@\"\n", disk_ms, folder);
    if (*disk_ms)
        text_write(slow_shim, script, 0700);
    free(script);
    free(folder);
}

static struct agent *agent_begin(const char *server, const char *folder)
{
    struct error err;
    struct arena *arena = arena_new();
    const struct rpc_tls tls = server_tls(arena);
    const struct agent_options options = {.server = server,
                                          .tls = &tls,
                                          .folder = folder,
                                          .node_name = "n1",
                                          .task_path = task_path(),
                                          .shim_path = *slow_shim ? slow_shim : shim_path(),
                                          .cpu_millis = 4000,
                                          .memory_bytes = 1 << 30,
                                          .fake_gpus = 2};
    struct agent *agent = agent_start(&options, &err);
    CHECK_OK(agent != NULL, &err);
    arena_free(arena);
    return agent;
}

/*
 * Not a test of its own: this program, started again with a server's address, is an agent that
 * can be killed.
 */
TEST(agent_child)
{
    const char *server = getenv("AGENT_TEST_SERVER"), *shim = getenv("AGENT_TEST_SHIM");
    if (!server)
        return;
    snprintf(slow_shim, sizeof(slow_shim), "%s", shim ? shim : "");
    struct agent *agent = agent_begin(server, getenv("AGENT_TEST_FOLDER"));
    for (;;)
        pause();
    agent_stop(agent);
}

/* In shell; both end by themselves when a test has failed and nobody ends them. */
#define FOR_A_WHILE "i=0; while [ $((i += 1)) -lt 3000 ]; do sleep 0.02; done"
#define UNTIL_GO "i=0; while [ ! -e go ] && [ $((i += 1)) -lt 3000 ]; do sleep 0.02; done"

static struct agent_command start_of(int64_t epoch, const char *script)
{
    return (struct agent_command){.kind = AGENT_COMMAND_START,
                                  .start = {.task = {1, epoch, "worker", 0},
                                            .attempt = 1,
                                            .spec = script,
                                            .job_folder = folder_path("job"),
                                            .dataset_folder = "/data/set",
                                            .cpu_millis = 1500}};
}

static struct agent_command stop_of(int64_t epoch, bool kill, int64_t grace_ms)
{
    return (struct agent_command){
        .kind = AGENT_COMMAND_STOP,
        .stop = {.task = {1, epoch, "worker", 0}, .kill = kill, .grace_ms = grace_ms}};
}

static void start(struct server *server, int64_t epoch, const char *script)
{
    struct agent_command command = start_of(epoch, script);
    server_command(server, &command);
}

static void stop(struct server *server, int64_t epoch, bool kill, int64_t grace_ms)
{
    struct agent_command command = stop_of(epoch, kill, grace_ms);
    server_command(server, &command);
}

static void wait_gone(const char *path)
{
    for (int i = 0; i < 1000 && exists(path); i++)
        usleep(5000);
    CHECK(!exists(path));
}

static void check_file(struct server *server, const char *task, const char *file,
                       const char *text)
{
    char *got = server_file(server, task, file);
    CHECK_TEXT(got, text);
    free(got);
}

/* A task runs, what it writes arrives before its end, and its folder goes. */
TEST(agent_runs_a_task)
{
    struct server server;
    char folder[256];
    snprintf(folder, sizeof(folder), "%s", folder_path("runs"));
    CHECK(mkdir(folder_path("job"), 0700) == 0);
    server_open(&server, "local:agent-test");
    struct agent *agent = agent_begin("local:agent-test", folder);
    start(&server, 5,
          "echo hello; echo oops >&2; printf 'a\\nb\\n' >events.out.tfevents.1; "
          "cat arguments; env | cut -d= -f1 | sort | tr '\\n' ' '");
    struct known_task task = server_wait(&server, "5-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_OK);
    CHECK_INT(task.exit_code, 0);
    CHECK_INT(task.ends, 1);
    char *expected = alloc_printf(
        "hello\ntrain spec.json --data /data/set --out %s/attempts/5-worker-0 "
        "--checkpoints %s/checkpoints --resume --epoch 5 --attempt 1 --threads 2\n"
        "HOME LANG PATH PWD TRAINYARD_ATTEMPT TRAINYARD_COOKIE TRAINYARD_EPOCH TRAINYARD_INDEX "
        "TRAINYARD_JOB TRAINYARD_ROLE ",
        folder, folder_path("job"));
    check_file(&server, "5-worker-0", "stdout.log", expected);
    check_file(&server, "5-worker-0", "stderr.log", "oops\n");
    check_file(&server, "5-worker-0", "events.out.tfevents.1", "a\nb\n");
    free(expected);
    CHECK_INT(server.capacity.cpu_millis, 4000);
    CHECK_INT(server.capacity.gpus, 2);
    CHECK(strlen(server.identity) == 32);
    wait_gone(folder_path("runs/attempts/5-worker-0"));
    wait_gone(folder_path("runs/attempts/5-worker-0.tmp"));
    CHECK(exists(folder_path("job/events/5-worker-0/events.out.tfevents.1")));
    agent_stop(agent);
    server_close(&server);
}

TEST(agent_says_why_a_task_ended)
{
    static const struct {
        const char *script;
        enum agent_exit_reason reason;
        const char *error;
    } cases[] = {
        {"exit 0", AGENT_EXIT_OK, ""},
        {"echo '{\"code\": \"INVALID_ARGUMENT\", \"text\": \"loss is NaN\", \"pointer\": "
         "\"/train\"}' "
         ">error.json; exit 2",
         AGENT_EXIT_USER, "/train: loss is NaN"},
        {"exit 3", AGENT_EXIT_STOPPED, ""},
        {"echo first >&2; echo last >&2; exit 9", AGENT_EXIT_CRASH,
         "exit code 9; its last words: last"},
        {"kill -SEGV $$", AGENT_EXIT_CRASH, "ended by signal 11 (Segmentation fault)"},
        {"kill -KILL $$", AGENT_EXIT_CRASH, "ended by signal 9 (Killed)"},
    };
    struct server server;
    server_open(&server, "local:agent-test");
    struct agent *agent = agent_begin("local:agent-test", folder_path("ends"));
    for (int i = 0; i < ARRAY_LEN(cases); i++)
        start(&server, 10 + i, cases[i].script);
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%d-worker-0", 10 + i);
        struct known_task task = server_wait(&server, name, AGENT_TASK_EXITED);
        CHECK_INT(task.reason, cases[i].reason);
        CHECK_TEXT(task.error, cases[i].error);
    }
    agent_stop(agent);
    server_close(&server);
}

TEST(agent_cannot_start)
{
    struct server server;
    struct error err;
    server_open(&server, "local:agent-test");
    text_write(folder_path("broken"), "#!/no/such/interpreter\n", 0700);
    const struct agent_options options = {.server = "local:agent-test",
                                          .folder = folder_path("cannot"),
                                          .node_name = "n1",
                                          .task_path = folder_path("broken"),
                                          .shim_path = shim_path()};
    struct agent *agent = agent_start(&options, &err);
    CHECK_OK(agent != NULL, &err);
    start(&server, 1, "exit 0");
    struct known_task task = server_wait(&server, "1-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_START);
    CHECK(strstr(task.error, "broken: No such file or directory"));
    agent_stop(agent);
    server_close(&server);
}

TEST(agent_stops_tasks)
{
    struct server server;
    server_open(&server, "local:agent-test");
    struct agent *agent = agent_begin("local:agent-test", folder_path("stops"));
    start(&server, 1, "trap 'echo saved; exit 3' TERM; echo up; " FOR_A_WHILE);
    start(&server, 2, "trap '' TERM; echo up; " FOR_A_WHILE);
    start(&server, 3, "trap '' TERM; echo up; " FOR_A_WHILE);
    for (int i = 1; i <= 3; i++) {
        char name[64], *text;
        snprintf(name, sizeof(name), "%d-worker-0", i);
        server_wait(&server, name, AGENT_TASK_RUNNING);
        for (int n = 0; n < 1000; n++) {
            text = server_file(&server, name, "stdout.log");
            bool up = *text;
            free(text);
            if (up)
                break;
            usleep(5000);
        }
    }
    stop(&server, 1, false, 20000);
    stop(&server, 2, false, 200);
    stop(&server, 3, true, 0);
    stop(&server, 4, false, 0); /* never heard of */
    struct known_task task = server_wait(&server, "1-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_STOPPED);
    CHECK_INT(task.exit_code, 3);
    check_file(&server, "1-worker-0", "stdout.log", "up\nsaved\n");
    task = server_wait(&server, "2-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_STOPPED);
    CHECK_INT(task.signal, SIGKILL);
    task = server_wait(&server, "3-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_STOPPED);
    task = server_wait(&server, "4-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_LOST);
    agent_stop(agent);
    server_close(&server);
}

/* From the write of a record to the server: well under 100 ms. */
TEST(agent_ships_at_once)
{
    struct server server;
    server_open(&server, "local:agent-test");
    struct agent *agent = agent_begin("local:agent-test", folder_path("fast"));
    start(&server, 1, ": >events.out.tfevents.x; " UNTIL_GO "; exit 0");
    server_wait(&server, "1-worker-0", AGENT_TASK_RUNNING);
    const char *events = folder_path("fast/attempts/1-worker-0/events.out.tfevents.x");
    for (int i = 0; i < 1000 && !exists(events); i++)
        usleep(5000);
    usleep(50000);
    uint64_t worst_us = 0;
    for (int i = 0; i < 20; i++) {
        usleep(20000);
        uint64_t written_us = clock_monotonic_us();
        int fd = open(events, O_WRONLY | O_APPEND);
        CHECK_INT(write(fd, "record\nhal", 10), 10); /* and half of the next */
        CHECK_INT(write(fd, "f\n", 2), 2);
        close(fd);
        uint64_t shipped_us = 0;
        for (int n = 0; n < 2000 && shipped_us < written_us; n++) {
            usleep(500);
            pthread_mutex_lock(&server.lock);
            shipped_us = server.shipped_us;
            pthread_mutex_unlock(&server.lock);
        }
        CHECK(shipped_us >= written_us);
        if (shipped_us - written_us > worst_us)
            worst_us = shipped_us - written_us;
    }
    print_message("worst of 20: %llu us\n", (unsigned long long)worst_us);
    CHECK(worst_us < 100000);
    text_write(folder_path("fast/attempts/1-worker-0/go"), "", 0600);
    server_wait(&server, "1-worker-0", AGENT_TASK_EXITED);
    char *text = server_file(&server, "1-worker-0", "events.out.tfevents.x");
    CHECK_INT(strlen(text), 20 * 12);
    free(text);
    agent_stop(agent);
    server_close(&server);
}

/* A record larger than a batch arrives; one that is torn at the end keeps nobody waiting. */
TEST(agent_ships_large_and_torn)
{
    struct server server;
    server_open(&server, "local:agent-test");
    struct agent *agent = agent_begin("local:agent-test", folder_path("large"));
    start(&server, 1,
          "(head -c 5000000 /dev/zero | tr '\\0' x; echo; printf torn) "
          ">events.out.tfevents.x; head -c 3000000 /dev/zero | tr '\\0' y");
    struct known_task task = server_wait(&server, "1-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_OK);
    char *text = server_file(&server, "1-worker-0", "events.out.tfevents.x");
    CHECK_INT(strlen(text), 5000001);
    free(text);
    text = server_file(&server, "1-worker-0", "stdout.log");
    CHECK_INT(strlen(text), 3000000);
    free(text);
    agent_stop(agent);
    server_close(&server);
}

/* The server goes while a task writes, and comes back knowing what it had. */
TEST(agent_outlives_the_server)
{
    struct server server;
    server_open(&server, "local:agent-test");
    struct agent *agent = agent_begin("local:agent-test", folder_path("outlives"));
    start(&server, 1, "i=0; while [ $i -lt 60 ]; do echo $i; i=$((i + 1)); sleep 0.01; done");
    server_wait(&server, "1-worker-0", AGENT_TASK_RUNNING);
    server_silence(&server);
    usleep(300000);
    server.epoch += 10; /* it has restarted: sessions are gone */
    server_serve(&server, "local:agent-test");
    struct known_task task = server_wait(&server, "1-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_OK);
    CHECK_INT(server.joins, 2);
    char *text = server_file(&server, "1-worker-0", "stdout.log");
    CHECK(strstr(text, "0\n1\n2\n"));
    CHECK_INT(strlen(text), 10 * 2 + 50 * 3);
    free(text);
    agent_stop(agent);
    server_close(&server);
}

/*
 * The server has said that it has the start of a record, which it had in memory only, and lost
 * it.  What comes next is the end of the file: all of it must arrive.
 */
TEST(agent_says_again_what_the_server_forgot)
{
    struct server server;
    server_open(&server, "local:agent-test");
    server.keeps = true;
    struct agent *agent = agent_begin("local:agent-test", folder_path("forgot"));
    start(&server, 1,
          "printf 'one\nha' >events.out.tfevents.x; " UNTIL_GO
          "; printf 'lf\nlast\n' >>events.out.tfevents.x");
    server_wait(&server, "1-worker-0", AGENT_TASK_RUNNING);
    size_t kept = 0;
    for (int i = 0; i < 2000 && kept < 2; i++) {
        usleep(5000);
        pthread_mutex_lock(&server.lock);
        kept = server.kept.size;
        pthread_mutex_unlock(&server.lock);
    }
    CHECK_INT(kept, 2);
    pthread_mutex_lock(&server.lock);
    str_clear(&server.kept);
    pthread_mutex_unlock(&server.lock);
    text_write(folder_path("forgot/attempts/1-worker-0/go"), "", 0600);
    struct known_task task = server_wait(&server, "1-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_OK);
    char *text = server_file(&server, "1-worker-0", "events.out.tfevents.x");
    CHECK_TEXT(text, "one\nhalf\nlast\n");
    free(text);
    agent_stop(agent);
    server_close(&server);
}

/* Bytes that the server will never take do not hold up the end. */
TEST(agent_gives_up_refused_bytes)
{
    struct server server;
    server_open(&server, "local:agent-test");
    server.refuse_ship = DATA_LOSS;
    struct agent *agent = agent_begin("local:agent-test", folder_path("refused"));
    start(&server, 1, "echo lost");
    struct known_task task = server_wait(&server, "1-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_OK);
    CHECK_TEXT(task.error, "stdout.log: the server takes no bytes");
    agent_stop(agent);
    server_close(&server);
}

/* An agent that stops leaves its tasks; the next one takes them over, or finds how they ended.
 */
TEST(agent_adopts)
{
    struct server server;
    server_open(&server, "local:agent-test");
    char folder[256];
    snprintf(folder, sizeof(folder), "%s", folder_path("adopts"));
    struct agent *agent = agent_begin("local:agent-test", folder);
    start(&server, 1, "echo one; " UNTIL_GO "; echo two");
    start(&server, 2, "echo one; " UNTIL_GO "; echo two; exit 2");
    start(&server, 3, "(setsid sleep 300 & echo $! >stray.pid); sleep 60");
    start(&server, 4, "sleep 60");
    for (int i = 1; i <= 4; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%d-worker-0", i);
        server_wait(&server, name, AGENT_TASK_RUNNING);
    }
    agent_stop(agent);
    text_write(folder_path("adopts/attempts/2-worker-0/go"), "", 0600);
    for (int i = 0; i < 1000 && !exists(folder_path("adopts/attempts/2-worker-0/exit.json"));
         i++)
        usleep(5000);
    CHECK(mkdir(folder_path("adopts/attempts/9-worker-0.tmp"), 0700) == 0);
    /* The shim of the third dies, as if killed by hand. */
    char *pid;
    char *text = text_read(folder_path("adopts/attempts/3-worker-0/shim.json"));
    for (int i = 0; i < 1000 && !exists(folder_path("adopts/attempts/3-worker-0/stray.pid"));
         i++)
        usleep(5000);
    usleep(50000);
    char *stray = text_read(folder_path("adopts/attempts/3-worker-0/stray.pid"));
    pid_t stray_pid = (pid_t)strtol(stray, NULL, 10);
    free(stray);
    CHECK(kill(stray_pid, 0) == 0);
    pid = strstr(text, "\"pid\": ");
    CHECK(pid);
    CHECK(kill((pid_t)strtol(pid + 7, NULL, 10), SIGKILL) == 0);
    free(text);

    server.discard = "4-worker-0";
    agent = agent_begin("local:agent-test", folder);
    struct known_task task = server_wait(&server, "2-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_USER);
    check_file(&server, "2-worker-0", "stdout.log", "one\ntwo\n");
    task = server_wait(&server, "3-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_LOST);
    CHECK(process_is_gone(stray_pid));
    CHECK_INT(server_task(&server, "1-worker-0").state, AGENT_TASK_RUNNING);
    text_write(folder_path("adopts/attempts/1-worker-0/go"), "", 0600);
    task = server_wait(&server, "1-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_OK);
    check_file(&server, "1-worker-0", "stdout.log", "one\ntwo\n");
    wait_gone(folder_path("adopts/attempts/4-worker-0"));
    wait_gone(folder_path("adopts/attempts/9-worker-0.tmp"));
    agent_stop(agent);
    server_close(&server);
}

/* After a reboot another process may have the shim's pid: the task is lost. */
TEST(agent_adopts_nothing_of_another_boot)
{
    static const char other[] = "00000000-0000-4000-8000-000000000000";
    struct server server;
    server_open(&server, "local:agent-test");
    char folder[256];
    snprintf(folder, sizeof(folder), "%s", folder_path("boots"));
    struct agent *agent = agent_begin("local:agent-test", folder);
    start(&server, 1, UNTIL_GO);
    server_wait(&server, "1-worker-0", AGENT_TASK_RUNNING);
    agent_stop(agent);
    char *text = text_read(folder_path("boots/attempts/1-worker-0/shim.json"));
    char *boot = strstr(text, "\"boot_id\": \""), *pid = strstr(text, "\"pid\": ");
    CHECK(boot && pid);
    memcpy(boot + 12, other, sizeof(other) - 1);
    text_write(folder_path("boots/attempts/1-worker-0/shim.json"), text, 0600);
    pid_t shim = (pid_t)strtol(pid + 7, NULL, 10);

    agent = agent_begin("local:agent-test", folder);
    struct known_task task = server_wait(&server, "1-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_LOST);
    agent_stop(agent);
    server_close(&server);
    (void)kill(shim, SIGKILL);
    free(text);
}

TEST(agent_refused)
{
    struct server server;
    struct error err;
    server_open(&server, "local:agent-test");
    server.refuse_join = UNAUTHENTICATED;
    struct agent *agent = agent_begin("local:agent-test", folder_path("refused-join"));
    CHECK(agent_wait_failed(agent, 10000, &err));
    CHECK_INT(err.code, UNAUTHENTICATED);
    CHECK_TEXT(err.text, "this token is not known");

    const struct agent_options second = {.server = "local:agent-test",
                                         .folder = folder_path("refused-join"),
                                         .task_path = task_path(),
                                         .shim_path = shim_path()};
    CHECK_FAILS(agent_start(&second, &err), &err, EXISTS);
    agent_stop(agent);
    server_close(&server);
}

/* The program again, as an agent alone; what it writes by itself is in the folder of this one.
 */
static pid_t child_begin(const char *server, const char *folder)
{
    pid_t pid;
    char *command[] = {"agent_test", NULL};
    const char *root = getenv("TMPDIR");
    char *before = root ? alloc_printf("%s", root) : NULL;
    setenv("TMPDIR", folder_name, 1);
    setenv("AGENT_TEST_SERVER", server, 1);
    setenv("AGENT_TEST_FOLDER", folder, 1);
    CHECK_INT(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, command, environ), 0);
    unsetenv("AGENT_TEST_SERVER");
    unsetenv("AGENT_TEST_FOLDER");
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    free(before);
    return pid;
}

static void child_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
}

/* kill -9 of the agent at many moments: each task runs once, each byte comes once. */
TEST(agent_killed_at_any_moment)
{
    struct server server;
    char address[64], count[300];
    char folder[256];
    snprintf(folder, sizeof(folder), "%s", folder_path("killed"));
    server_open(&server, "127.0.0.1:0");
    snprintf(address, sizeof(address), "%s", rpc_server_address(server.rpc));
    snprintf(count, sizeof(count), "%s", folder_path("count"));
    char *script = alloc_printf("echo run >>%s; i=0; while [ $i -lt 20 ]; do echo $i; "
                                "i=$((i + 1)); sleep 0.01; done; exit 2",
                                count);
    pid_t pid = child_begin(address, folder);
    static const int moments_ms[] = {0, 2, 5, 8, 12, 20, 40, 80, 150, 250, 300, 350};
    for (int i = 0; i < ARRAY_LEN(moments_ms); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%d-worker-0", 100 + i);
        unlink(count);
        start(&server, 100 + i, script);
        usleep((useconds_t)moments_ms[i] * 1000);
        child_kill(pid);
        if (i % 3 == 2) /* it ends while no agent is there */
            usleep(400000);
        pid = child_begin(address, folder);
        struct known_task task = server_wait(&server, name, AGENT_TASK_EXITED);
        CHECK_INT(task.reason, AGENT_EXIT_USER);
        check_file(&server, name, "stdout.log",
                   "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n");
        struct stat info;
        CHECK(stat(count, &info) == 0);
        CHECK_INT(info.st_size, 4); /* "run\n", once */
    }
    child_kill(pid);
    free(script);
    server_close(&server);
}

static void wait_for(const char *path)
{
    for (int i = 0; i < 10000 && !exists(path); i++)
        usleep(1000);
    CHECK(exists(path));
}

/*
 * The agent dies when the shim has taken the folder and has said nothing yet, its disk being
 * slow; another comes after a while, or when shim.json is there and its first word alone.
 */
static struct agent *agent_comes_back(struct server *server, int64_t epoch, const char *script,
                                      bool after_first_word)
{
    char name[64], folder[256];
    const char *address = rpc_server_address(server->rpc);
    snprintf(folder, sizeof(folder), "%s", folder_path("slow"));
    snprintf(name, sizeof(name), "slow/attempts/%lld-worker-0/shim.lock", (long long)epoch);
    shim_on_disk("300-300");
    setenv("AGENT_TEST_SHIM", slow_shim, 1);
    pid_t pid = child_begin(address, folder);
    unsetenv("AGENT_TEST_SHIM");
    start(server, epoch, script);
    wait_for(folder_path(name));
    child_kill(pid);
    memcpy(strstr(name, "lock"), "json", 5);
    CHECK(!exists(folder_path(name)));
    if (after_first_word)
        wait_for(folder_path(name));
    if (server->discard)
        server->commands_count = 0; /* it is told no more to start it */
    struct agent *agent = agent_begin(address, folder);
    shim_on_disk("");
    return agent;
}

/* It is not started twice, nor said not to have been started. */
TEST(agent_comes_back_before_a_slow_shim_spoke)
{
    struct server server;
    server_open(&server, "127.0.0.1:0");
    char *script = alloc_printf("echo run >>%s; exit 2", folder_path("slow-count"));
    struct agent *agent = agent_comes_back(&server, 1, script, false);
    struct known_task task = server_wait(&server, "1-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_USER);
    char *ran = text_read(folder_path("slow-count"));
    CHECK_TEXT(ran, "run\n");
    free(ran);
    free(script);
    agent_stop(agent);
    server_close(&server);
}

/* What has ended before it was started, as is told, is not started by a shim on its way. */
TEST(agent_stops_what_a_slow_shim_starts)
{
    struct server server;
    server_open(&server, "127.0.0.1:0");
    char *script = alloc_printf("echo $$ >%s; exec sleep 60", folder_path("slow-pid"));
    server.discard = "2-worker-0";
    server.keep_exits = true;
    struct agent *agent = agent_comes_back(&server, 2, script, false);
    (void)server_wait(&server, "2-worker-0", AGENT_TASK_EXITED);
    usleep(1200000); /* by then the shim would have started it */
    if (exists(folder_path("slow-pid"))) {
        char *pid = text_read(folder_path("slow-pid"));
        CHECK(process_is_gone((pid_t)strtol(pid, NULL, 10)));
        free(pid);
    }
    free(script);
    agent_stop(agent);
    server_close(&server);
}

/* It has said who it is, and does not listen yet. */
TEST(agent_asks_a_slow_shim_that_does_not_listen_yet)
{
    struct server server;
    server_open(&server, "127.0.0.1:0");
    struct agent_command asked = stop_of(3, false, 30000);
    struct agent *agent =
        agent_comes_back(&server, 3, "trap 'exit 3' TERM; " FOR_A_WHILE, true);
    server_command(&server, &asked);
    uint64_t from_us = clock_monotonic_us();
    struct known_task task = server_wait(&server, "3-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_STOPPED);
    CHECK(clock_monotonic_us() - from_us < 10000000);
    agent_stop(agent);
    server_close(&server);
}

/* Of a task that has much to ship to a server whose disk is slow, others do not wait. */
TEST(agent_tells_an_end_while_others_ship)
{
    struct server server;
    server_open(&server, "local:agent-test");
    server.ship_ms = 60;
    struct agent *agent = agent_begin("local:agent-test", folder_path("shippers"));
    start(&server, 2, UNTIL_GO "; exit 2");
    server_wait(&server, "2-worker-0", AGENT_TASK_RUNNING);
    start(&server, 1,
          "i=0; while [ $((i += 1)) -le 80 ]; do "
          "echo x >events.out.tfevents.$i; done; exit 2");
    for (int i = 0; i < 1000 && !server.shipped_us; i++)
        usleep(5000);
    usleep(200000); /* it has begun with them, most likely all */
    text_write(folder_path("shippers/attempts/2-worker-0/go"), "", 0600);
    uint64_t from_us = clock_monotonic_us();
    (void)server_wait(&server, "2-worker-0", AGENT_TASK_EXITED);
    CHECK(clock_monotonic_us() - from_us < 2500000);
    struct known_task task = server_wait(&server, "1-worker-0", AGENT_TASK_EXITED);
    CHECK_INT(task.reason, AGENT_EXIT_USER);
    check_file(&server, "1-worker-0", "events.out.tfevents.80", "x\n");
    agent_stop(agent);
    server_close(&server);
}
