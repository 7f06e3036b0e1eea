/* top_job.c - where the time of one job's steps goes: its tasks, and who gives how much to
 * whom. */

#include "base/str.h"
#include "cli/client.h"
#include "cli/table.h"
#include "cli/top.h"
#include "server/url.h"

#define TOP_MATRIX_TASKS 12 /* more are on the page */

/* Of several tasks that it waits for the one that it waits for most. */
static const json_t *latest_of(const json_t *task)
{
    const json_t *most = NULL;
    size_t i;
    json_t *from;
    json_array_foreach(json_object_get(task, "from"), i, from)
    {
        if (!most || top_number(from, "wait_us") > top_number(most, "wait_us"))
            most = from;
    }
    return most;
}

/* When a worker has done its share of a step; NULL: it is none, or nothing is known. */
static const json_t *arrival_of(const json_t *times, const char *task)
{
    size_t i;
    json_t *arrival;
    json_array_foreach(json_object_get(times, "arrivals"), i, arrival)
    {
        if (!strcmp(top_text(arrival, "task"), task))
            return arrival;
    }
    return NULL;
}

/* Who is much later than the others, as the task itself tells after some seconds of it. */
static void print_stragglers(const json_t *times)
{
    size_t i;
    json_t *late;
    json_array_foreach(json_object_get(times, "arrivals"), i, late)
    {
        double us = top_number(late, "us"), others = top_number(late, "others_us");
        if (others > 0 && us > 1.5 * others && us - others > 500)
            printf("\n%s is late: its share of a step takes %.1f ms, the others' %.1f ms, %.1f "
                   "times as long\n",
                   top_text(late, "task"), us / 1e3, others / 1e3, us / others);
    }
}

/* What a task gets from another one in a step; -1: nothing ever comes from there. */
static double bytes_between(const json_t *to, const char *name)
{
    size_t i;
    json_t *from;
    json_array_foreach(json_object_get(to, "from"), i, from)
    {
        if (!strcmp(top_text(from, "task"), name))
            return top_number(from, "bytes");
    }
    return -1;
}

/* What all get from a task, or it from all. */
static double bytes_with(const json_t *tasks, const json_t *task, bool out)
{
    double sum = 0;
    size_t i;
    json_t *other;
    json_array_foreach(tasks, i, other)
    {
        double bytes = out ? bytes_between(other, top_text(task, "task"))
                           : bytes_between(task, top_text(other, "task"));
        sum += bytes > 0 ? bytes : 0;
    }
    return sum;
}

static void milliseconds_cell(struct table *table, double us)
{
    table_cell(table, "%.3f", (us > 0 ? us : 0) / 1e3);
}

/* How long it waits for its batch before a step: the only one has it where none arrives. */
static double input_of(const json_t *times, const json_t *task, const json_t *arrival)
{
    if (arrival)
        return top_number(arrival, "input_us");
    return strcmp(top_text(task, "task"), "worker:0") ? 0 : top_number(times, "input_us");
}

static void print_tasks(const json_t *times, double us)
{
    static const char *const head[] = {"TASK",      ">INPUT MS", ">WORKS",   ">SENDS",
                                       ">RECEIVES", ">WAITS",    ">OF STEP", ">DONE AT",
                                       "MOST FOR",  ">MS",       ">IN MIB",  ">OUT MIB"};
    const json_t *tasks = json_object_get(times, "tasks");
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *task;
    json_array_foreach(tasks, i, task)
    {
        double wait_us = top_number(task, "wait_us"), send_us = top_number(task, "send_us"),
               receive_us = top_number(task, "receive_us");
        const json_t *most = latest_of(task);
        table_cell(table, "%.60s", top_text(task, "task"));
        const json_t *arrival = arrival_of(times, top_text(task, "task"));
        milliseconds_cell(table, input_of(times, task, arrival));
        milliseconds_cell(table, top_number(task, "us") - wait_us - send_us);
        milliseconds_cell(table, send_us);
        milliseconds_cell(table, receive_us);
        milliseconds_cell(table, wait_us - receive_us);
        table_cell(table, "%.0f %%", us > 0 ? 100 * wait_us / us : 0);
        if (arrival)
            milliseconds_cell(table, top_number(arrival, "us"));
        else
            table_cell(table, "-");
        table_cell(table, "%.60s", most ? top_text(most, "task") : "-");
        milliseconds_cell(table, most ? top_number(most, "wait_us") : 0);
        table_cell(table, "%.3f", bytes_with(tasks, task, false) / (1 << 20));
        table_cell(table, "%.3f", bytes_with(tasks, task, true) / (1 << 20));
    }
    table_print(table);
}

/* Who gives how much to whom, where that fits a terminal. */
static void print_matrix(const json_t *tasks)
{
    const char *head[TOP_MATRIX_TASKS + 1] = {"KIB OF A STEP TO / FROM"};
    char names[TOP_MATRIX_TASKS][80];
    size_t count = json_array_size(tasks), i, k;
    json_t *to, *from;
    if (count < 2 || count > TOP_MATRIX_TASKS)
        return;
    json_array_foreach(tasks, i, to)
    {
        snprintf(names[i], sizeof(names[i]), ">%.70s", top_text(to, "task"));
        head[i + 1] = names[i];
    }
    struct table *table = table_new(head, (int)count + 1);
    json_array_foreach(tasks, i, to)
    {
        table_cell(table, "%.60s", top_text(to, "task"));
        json_array_foreach(tasks, k, from)
        {
            double bytes = bytes_between(to, top_text(from, "task"));
            if (bytes < 0)
                table_cell(table, "-");
            else
                table_cell(table, "%.1f", bytes / 1024);
        }
    }
    printf("\n");
    table_print(table);
}

/* Why it waits, how it ended, or whom it runs without. */
static void print_why(const json_t *why)
{
    if (strcmp(top_text(why, "code"), "NOT_WAITING") != 0 && *top_text(why, "text"))
        printf("%s\n\n", top_text(why, "text"));
}

static void print_job(const json_t *job, const json_t *why, const json_t *times)
{
    const json_t *tasks = json_object_get(times, "tasks");
    double us = top_number(times, "us");
    printf("job %lld, %s: %s", (long long)json_integer_value(json_object_get(job, "number")),
           top_text(job, "name"), top_text(job, "state"));
    if (json_is_integer(json_object_get(job, "step")))
        printf(", step %lld", (long long)json_integer_value(json_object_get(job, "step")));
    printf("\n\n");
    print_why(why);
    if (!json_array_size(tasks)) {
        printf("No step has been measured yet: a task says where its time goes after two "
               "seconds of training, and at the end.\n");
        return;
    }
    printf("a step takes %.3f ms, and waits for its input %.3f ms before (means of %lld steps, "
           "up to step %lld)\n\n",
           us / 1e3, top_number(times, "input_us") / 1e3,
           (long long)json_integer_value(json_object_get(times, "steps")),
           (long long)json_integer_value(json_object_get(times, "step")));
    print_tasks(times, us);
    print_matrix(tasks);
    print_stragglers(times);
}

static json_t *job_get(struct client *client, const char *name, const char *what,
                       struct error *err)
{
    struct str path = {0};
    str_add(&path, "/api/v1/jobs/");
    url_encode(&path, name);
    str_add(&path, what);
    json_t *answer = client_json(client, "GET", str_text(&path), NULL, NULL, err);
    str_release(&path);
    return answer;
}

bool top_job(struct client *client, const char *name, bool clear, struct error *err)
{
    json_t *job = job_get(client, name, "", err);
    json_t *why = job ? job_get(client, name, "/explain", err) : NULL;
    json_t *times = why ? job_get(client, name, "/times", err) : NULL;
    if (times) {
        printf("%s", clear ? "\033[H\033[2J" : "");
        print_job(job, why, times);
        fflush(stdout);
    }
    json_decref(job);
    json_decref(why);
    json_decref(times);
    return times != NULL;
}
