/* slurm_test.c - what is said to Slurm and read of it, and programs that do not behave. */

#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "scheduler/engines/command.h"
#include "scheduler/engines/slurm.h"
#include "tests/unit/test.h"

/* --- programs --- */

static bool shell(const char *script, const char *input, int timeout_ms, struct str *out,
                  struct error *err)
{
    char *words[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)script, NULL};
    struct command command = {.words = words, .input = input, .timeout_ms = timeout_ms};
    signal(SIGPIPE, SIG_IGN);
    return command_run(&command, out, err);
}

TEST(a_program_reads_and_writes)
{
    struct str out = {0};
    struct error err;
    CHECK_OK(shell("tr a-z A-Z; echo ignored >&2", "hello", 5000, &out, &err), &err);
    CHECK_TEXT(str_text(&out), "HELLO");
    str_clear(&out);
    CHECK_OK(shell("echo it reads nothing", "hello", 5000, &out, &err), &err);
    CHECK_TEXT(str_text(&out), "it reads nothing\n");
    str_release(&out);
}

TEST(a_program_that_fails_says_why)
{
    struct str out = {0};
    struct error err;
    CHECK_FAILS(shell("echo no partition >&2; exit 3", NULL, 5000, &out, &err), &err,
                UNAVAILABLE);
    assert_non_null(strstr(err.text, "no partition"));
    CHECK_FAILS(shell("kill -9 $$", NULL, 5000, &out, &err), &err, UNAVAILABLE);
    str_release(&out);
    char *none[] = {(char[]){"/no/such/program"}, NULL};
    CHECK_FAILS(command_run(&(struct command){.words = none, .timeout_ms = 1000}, &out, &err),
                &err, INTERNAL);
}

TEST(time_and_output_are_bounded)
{
    struct str out = {0};
    struct error err;
    uint64_t begin_us = clock_monotonic_us();
    CHECK_FAILS(shell("sleep 60 & sleep 60", NULL, 300, &out, &err), &err, DEADLINE);
    CHECK_FAILS(shell("yes", NULL, 20000, &out, &err), &err, EXHAUSTED);
    CHECK(out.size <= COMMAND_OUTPUT_MAX);
    atomic_bool stop = true;
    char *words[] = {(char[]){"sleep"}, (char[]){"60"}, NULL};
    CHECK_FAILS(
        command_run(&(struct command){.words = words, .timeout_ms = 60000, .stop = &stop}, &out,
                    &err),
        &err, CANCELLED);
    CHECK(clock_monotonic_us() - begin_us < 15000000);
    str_release(&out);
}

/* --- squeue --- */

TEST(squeue_is_read)
{
    struct arena *arena = arena_new();
    struct pilots_seen *seen;
    int count;
    slurm_read("12|trainyard-ab-slurm-q-1|PENDING|Resources\n"
               "13|trainyard-ab-slurm-q-2|RUNNING|None\n"
               "14|trainyard-cd-slurm-q-1|RUNNING|None\n" /* of another server */
               "15|hog|RUNNING|None\n"
               "16|trainyard-ab-slurm-q-3|NODE_FAIL|None\n"
               "17|trainyard-ab-slurm-q-4|PENDING|Nodes required are DOWN|DRAINED\n"
               "x|trainyard-ab-slurm-q-5|RUNNING|None\n"
               "18|trainyard-ab-slurm-q-6|RUNNING\n"
               "\n19|trainyard-ab-slurm-q-7|COMPLETING|None",
               "trainyard-ab-", arena, &seen, &count);
    CHECK_INT(count, 5);
    CHECK_TEXT(seen[0].id, "12");
    CHECK_TEXT(seen[0].name, "slurm-q-1");
    CHECK_TEXT(seen[0].says, "PENDING (Resources)");
    CHECK(seen[0].phase == PILOTS_WAITS);
    CHECK(seen[1].phase == PILOTS_RUNS);
    CHECK_TEXT(seen[1].says, "RUNNING");
    CHECK(seen[2].phase == PILOTS_ENDED);
    CHECK_TEXT(seen[3].says, "PENDING (Nodes required are DOWN|DRAINED)");
    CHECK(seen[4].phase == PILOTS_ENDED);
    slurm_read("", "x", arena, &seen, &count);
    CHECK_INT(count, 0);
    arena_free(arena);
}

/* --- settings, and the script --- */

#define QUEUE "\"queues\": {\"q\": {\"cpus\": 2, \"memory_bytes\": 1073741824, \"max\": 4}}"

static bool settings(const char *text, struct arena *arena, struct settings *out,
                     struct error *err)
{
    return settings_parse(text, strlen(text), arena, out, err);
}

static void refused(const char *text, const char *pointer, const char *words)
{
    struct arena *arena = arena_new();
    struct settings read;
    struct error err;
    CHECK_FAILS(settings(text, arena, &read, &err), &err, INVALID);
    CHECK_TEXT(err.pointer, pointer);
    if (!strstr(err.text, words))
        CHECK_STOP("'%s' has no '%s'", err.text, words);
    arena_free(arena);
}

TEST(settings_have_defaults)
{
    struct arena *arena = arena_new();
    struct settings read;
    struct error err;
    CHECK_OK(settings("{\"engine\": \"slurm\", " QUEUE "}", arena, &read, &err), &err);
    CHECK_INT(read.queues_count, 1);
    CHECK_TEXT(read.queues[0].bounds.queue, "q");
    CHECK_INT(read.queues[0].bounds.max, 4);
    CHECK_INT(read.queues[0].bounds.min, 0);
    CHECK_INT(read.queues[0].bounds.idle_us, 300000000);
    CHECK_INT(read.queues[0].like.capacity.cpu_millis, 2000);
    CHECK_INT(read.poll_ms, 5000);
    arena_free(arena);
}

TEST(settings_are_checked)
{
    refused("", "", "line 1");
    refused("[]", "", "object");
    refused("{}", "/engine", "\"slurm\"");
    refused("{\"engine\": \"slurm\"}", "/queues", "1 to 32");
    refused("{\"engine\": \"slurm\", \"poll_seconds\": 0, " QUEUE "}", "/poll_seconds",
            "is 0; it must be from 1 to 600");
    refused("{\"engine\": \"slurm\", \"nope\": 0, " QUEUE "}", "/nope", "no such field");
    refused("{\"engine\": \"slurm\", \"folder\": \"tmp\", " QUEUE "}", "/folder", "absolute");
    refused("{\"engine\": \"slurm\", \"agent\": \"a\\nb\", " QUEUE "}", "/agent", "control");
    refused("{\"engine\": \"slurm\", \"agent_options\": [1], " QUEUE "}", "/agent_options",
            "texts");
    refused("{\"engine\": \"slurm\", \"queues\": {\"q\": {\"memory_bytes\": 1048576}}}",
            "/queues/q/cpus", "missing");
    refused("{\"engine\": \"slurm\", \"queues\": {\"q\": {\"cpus\": 1, \"memory_bytes\": 1}}}",
            "/queues/q/memory_bytes", "is 1; it must be from 1048576");
    refused("{\"engine\": \"slurm\", \"queues\": {\"q\": {\"cpus\": 1, \"memory_bytes\": "
            "1048576, \"max\": 2, \"min\": 3}}}",
            "/queues/q/min", "is 3; it must be from 0 to 2");
    refused("{\"engine\": \"slurm\", \"queues\": {\"q\": {\"cpus\": 1, \"memory_bytes\": "
            "1048576, \"labels\": {\"a\": \"b;c\"}}}}",
            "/queues/q/labels", "letters");
    refused("{\"engine\": \"slurm\", \"queues\": {\"a b\": {}}}", "/queues/a b/", "letters");
    refused("{\"engine\": \"slurm\", \"queues\": {\"a\": {\"cpus\": 1, \"memory_bytes\": "
            "1048576, \"max\": 600}, \"b\": {\"cpus\": 1, \"memory_bytes\": 1048576, \"max\": "
            "600}}}",
            "/queues", "over 1000");
}

#define PODS "{\"engine\": \"kubernetes\", "

TEST(settings_for_pods_are_checked)
{
    refused(PODS QUEUE "}", "/image", "missing");
    refused(PODS "\"image\": \"i\", \"url\": \"http://10.0.0.1\", " QUEUE "}", "/url",
            "https://");
    refused(PODS "\"image\": \"i\", \"claim\": \"c\", " QUEUE "}", "/claim_path", "goes with");
    refused(PODS "\"image\": \"i\", \"queues\": {\"Q\": {}}}", "/queues/Q/", "small letters");
    refused(PODS "\"image\": \"i\", \"queues\": {\"q\": {\"cpus\": 1, \"memory_bytes\": "
                 "1048576, \"partition\": \"p\"}}}",
            "/queues/q/partition", "no such field");
    refused(PODS "\"image\": \"i\", \"queues\": {\"q\": {\"cpus\": 1, \"memory_bytes\": "
                 "1048576, \"node_selector\": {\"a\": 1}}}}",
            "/queues/q/node_selector", "texts");
}

/* Whatever stands in the settings is a word for the shell, and no more. */
TEST(the_script_quotes_what_it_is_told)
{
    struct arena *arena = arena_new();
    struct settings read;
    struct error err;
    struct str script = {0}, out = {0};
    CHECK_OK(settings("{\"engine\": \"slurm\", \"agent\": \"/bin/echo\", \"folder\": \"/tmp\", "
                      "\"agent_options\": [\"it's $HOME\", \"`id`\"], " QUEUE "}",
                      arena, &read, &err),
             &err);
    engine_script(&read, &read.queues[0], "slurm-q-1", "10.0.0.1:7071", &script);
    CHECK_OK(shell(str_text(&script), NULL, 5000, &out, &err), &err);
    const char *end = "--name slurm-q-1 --server 10.0.0.1:7071 --cpus 2 --memory 1073741824 "
                      "it's $HOME `id`\n";
    CHECK(out.size > strlen(end));
    CHECK_TEXT(str_text(&out) + out.size - strlen(end), end);
    CHECK(strncmp(str_text(&out), "agent --dir /tmp/slurm-q-1.", 27) == 0);
    str_release(&script);
    str_release(&out);
    arena_free(arena);
}

/* An agent that dies: what it started is told to end, and is killed when it does not. */
TEST(the_script_ends_what_its_agent_leaves)
{
    /* As agents do: each shim works in its attempt's folder, where its number is written. */
    static const char agent[] =
        "#!/bin/sh\n"
        "for name in told stubborn; do\n"
        "    mkdir -p \"$3/attempts/$name\" && cd \"$3/attempts/$name\" || exit 1\n"
        "    if [ $name = told ]; then sleep 300 & else (trap '' TERM; exec sleep 300) & fi\n"
        "    echo \"{\\\"pid\\\": $!, \\\"task_pid\\\": $$}\" >shim.json\n"
        "    echo $!\n"
        "done >\"$3.left\" 2>&1 </dev/null\n"
        "exit 7\n";
    struct arena *arena = arena_new();
    struct settings read;
    struct error err;
    struct str script = {0}, out = {0};
    char folder[] = "/tmp/pilot-XXXXXX";
    CHECK(mkdtemp(folder));
    const char *program = arena_printf(arena, "%s/agent", folder);
    FILE *file = fopen(program, "we");
    CHECK(file && fputs(agent, file) >= 0 && fclose(file) == 0 && chmod(program, 0700) == 0);
    CHECK_OK(settings(arena_printf(arena,
                                   "{\"engine\": \"slurm\", \"agent\": \"%s\", \"folder\": "
                                   "\"%s\", \"grace_seconds\": 1, " QUEUE "}",
                                   program, folder),
                      arena, &read, &err),
             &err);
    engine_script(&read, &read.queues[0], "q", "10.0.0.1:7071", &script);
    str_add(&script, "\n");
    CHECK_FAILS(shell(str_text(&script), NULL, 20000, &out, &err), &err, UNAVAILABLE); /* 7 */
    /* What has ended has no folder, though nobody may have asked for its end. */
    CHECK_OK(
        shell(arena_printf(arena,
                           "cat %s/q.*.left | while read -r pid; do readlink "
                           "/proc/$pid/cwd && echo lives; echo seen; done; ls %s; rm -r %s",
                           folder, folder, folder),
              NULL, 5000, &out, &err),
        &err);
    CHECK(!strstr(str_text(&out), "lives"));
    CHECK(strncmp(str_text(&out), "seen\nseen\nagent\nq.", 18) == 0);
    CHECK_TEXT(str_text(&out) + strlen("seen\nseen\nagent\nq.XXXXXX"), ".left\n");
    str_release(&script);
    str_release(&out);
    arena_free(arena);
}
