/*
 * case_child.c - the cases of a file, run in child processes.
 *
 * DESIGN: a child runs case after case and writes lines into a pipe: the name of a case, then
 * how it went.  When it crashes or is silent for a minute, the case at hand has failed and a
 * new child goes on behind it.
 */

#include "tests/interop/cases/cases.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/str.h"

#define CASE_TIMEOUT_MS 60000

/* One line per case: "P", "F why", "S ops". */
static _Noreturn void child_main(const struct case_records *records,
                                 const struct case_wanted *wanted, int from, int out)
{
    FILE *report = fdopen(out, "w");
    struct case_how how = {.options = wanted->options, .texts = wanted->texts};
    struct error failure;
    if (wanted->master_tasks) {
        how.master =
            case_master_start(wanted->master_tasks, &wanted->options, wanted->seed, &failure);
        if (!how.master) {
            fprintf(report, "C the servers\nF %s\n", failure.text);
            fclose(report);
            exit(1);
        }
    }
    for (int i = from; i < records->count; i++) {
        Case *c = case_records_unpack(records, i);
        struct str missing = {0};
        struct error err = {0};
        fprintf(report, "C %s\n", c ? c->name : "?");
        fflush(report);
        if (c)
            case_missing(c, &missing);
        if (!c)
            fprintf(report, "F not a Case\n");
        else if ((wanted->only && !strstr(c->name, wanted->only)) ||
                 (wanted->but && strstr(c->name, wanted->but)))
            fprintf(report, "O\n");
        else if (missing.size)
            fprintf(report, "S %s\n", str_text(&missing));
        else if (case_run(c, &how, wanted->times, &err))
            fprintf(report, "P\n");
        else {
            for (char *p = err.text; *p; p++)
                *p = *p == '\n' ? ' ' : *p;
            fprintf(report, "F %s\n", err.text);
        }
        fflush(report);
        str_release(&missing);
        if (c)
            trainyard__cases__case__free_unpacked(c, NULL);
    }
    fclose(report);
    _exit(0); /* servers and all */
}

static void count_missing(struct case_totals *totals, char *ops)
{
    char *rest;
    for (char *op = strtok_r(ops, " ", &rest); op; op = strtok_r(NULL, " ", &rest)) {
        int *count = map_find(totals->missing, op);
        if (!count) {
            count = alloc_bytes(sizeof(*count));
            map_set(totals->missing, op, count);
        }
        ++*count;
    }
}

/* Takes in one line; returns 1 when it ends a case. */
static int take_line(struct case_totals *totals, char *line, char *name, size_t name_size)
{
    switch (line[0]) {
    case 'C':
        snprintf(name, name_size, "%s", line + 2);
        return 0;
    case 'P':
        totals->passed++;
        return 1;
    case 'S':
        totals->skipped++;
        count_missing(totals, line + 2);
        return 1;
    case 'F':
        totals->failed++;
        printf("FAIL %s: %s\n", name, line + 2);
        return 1;
    default:
        return 1;
    }
}

/* Reads a child's lines until it ends or hangs; returns how many cases it has finished. */
static int follow(int in, pid_t child, struct case_totals *totals)
{
    struct str lines = {0};
    char name[300] = "", block[4096];
    int done = 0;
    bool in_case = false, timed_out = false;
    for (;;) {
        struct pollfd poller = {.fd = in, .events = POLLIN};
        if (poll(&poller, 1, CASE_TIMEOUT_MS) == 0) {
            timed_out = true;
            kill(child, SIGKILL);
            break;
        }
        ssize_t n = read(in, block, sizeof(block));
        if (n <= 0)
            break;
        str_add_bytes(&lines, block, (size_t)n);
        for (char *end; lines.size && (end = memchr(lines.data, '\n', lines.size));) {
            *end = 0;
            in_case = take_line(totals, lines.data, name, sizeof(name)) == 0;
            done += !in_case;
            str_drop(&lines, (size_t)(end - lines.data) + 1);
        }
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (in_case) {
        totals->failed++;
        done++;
        printf("FAIL %s: %s (status %d)\n", name, timed_out ? "no answer in 60 s" : "crashed",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    str_release(&lines);
    return done;
}

bool case_child_file(const char *path, const struct case_wanted *wanted,
                     struct case_totals *totals)
{
    struct case_records records = {0};
    struct error err = {0};
    if (!case_records_read(path, &records, &err)) {
        printf("FAIL %s: %s\n", path, err.text);
        totals->failed++;
        return false;
    }
    for (int next = 0; next < records.count;) {
        int ends[2];
        if (pipe(ends) != 0)
            return false;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            child_main(&records, wanted, next, ends[1]);
        }
        close(ends[1]);
        int done = child > 0 ? follow(ends[0], child, totals) : 0;
        close(ends[0]);
        if (done == 0) {
            printf("FAIL %s: the child does not start\n", path);
            totals->failed++;
            break;
        }
        next += done;
    }
    case_records_release(&records);
    return true;
}
