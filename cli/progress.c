/* progress.c - following a job in the terminal. */

#include <inttypes.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/progress.h"
#include "cli/table.h"

#define PROGRESS_PLAIN_US 2000000 /* between plain lines */
#define PROGRESS_DRAW_US 80000

struct progress {
    struct client *client;
    const struct progress_options *options;
    bool terminal;
    bool drawn; /* a line without its end is on the terminal */
    uint64_t shown_us;
    int64_t number;
    char name[130];
    char state[16];
    char reason[400];
    int64_t step;
    int64_t steps;      /* -1: not known */
    int64_t first_step; /* where this watch began, for the time left */
    uint64_t first_us;
    double loss, accuracy, val_accuracy, rate; /* negative: not known */
};

static const char *leave_text; /* what Ctrl-C prints; set before the handler is */

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    if (leave_text && write(STDOUT_FILENO, leave_text, strlen(leave_text)) < 0)
        _exit(CLI_FAILED);
    _exit(CLI_OK);
}

static bool is_final(const char *state)
{
    return strcmp(state, "succeeded") == 0 || strcmp(state, "failed") == 0 ||
           strcmp(state, "cancelled") == 0;
}

static void take_value(struct progress *p, const char *name, double value)
{
    if (strcmp(name, "loss") == 0)
        p->loss = value;
    else if (strcmp(name, "accuracy") == 0)
        p->accuracy = value;
    else if (strcmp(name, "val_accuracy") == 0)
        p->val_accuracy = value;
    else if (strcmp(name, "examples_per_second") == 0)
        p->rate = value;
}

/* Reads the job itself: how many steps there are, the last values. */
static bool load(struct progress *p, struct error *err)
{
    char *path = alloc_printf("/api/v1/jobs/%s", p->options->job);
    json_t *job = client_json(p->client, "GET", path, NULL, NULL, err);
    free(path);
    if (!job)
        return false;
    const char *text = json_string_value(json_object_get(job, "reason"));
    p->number = json_integer_value(json_object_get(job, "number"));
    snprintf(p->name, sizeof(p->name), "%s", json_string_value(json_object_get(job, "name")));
    if (!*p->state) /* from then on events tell it: the last of them is shown, too */
        snprintf(p->state, sizeof(p->state), "%s",
                 json_string_value(json_object_get(job, "state")));
    snprintf(p->reason, sizeof(p->reason), "%s", text ? text : "");
    json_t *steps = json_object_get(job, "steps");
    p->steps = json_is_integer(steps) ? json_integer_value(steps) : -1;
    if (json_integer_value(json_object_get(job, "step")) > p->step)
        p->step = json_integer_value(json_object_get(job, "step"));
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(job, "last"), name, value)
    {
        take_value(p, name, json_number_value(value));
    }
    json_decref(job);
    return true;
}

/* --- showing --- */

static void add_value(struct str *line, const char *name, double value)
{
    if (value >= 0)
        str_printf(line, "  %s %.4f", name, value);
}

static void add_bar(struct str *line, double part)
{
    const int width = 20;
    int full = (int)(part * width + 0.5);
    str_add(line, "  ");
    for (int i = 0; i < width; i++)
        str_add(line, i < full ? "█" : "░");
    str_printf(line, " %3.0f %%", part * 100);
}

static void add_left(struct str *line, const struct progress *p)
{
    int64_t done = p->step - p->first_step;
    double passed = (double)(clock_monotonic_us() - p->first_us) / 1e6;
    char text[40];
    if (p->steps > 0 && done > 0 && passed > 1 && p->step < p->steps)
        str_printf(line, "  %s left",
                   table_duration(passed / (double)done * (double)(p->steps - p->step), text,
                                  sizeof(text)));
}

static void make_line(const struct progress *p, struct str *line)
{
    str_printf(line, "#%" PRId64 " %s  %s", p->number, p->name, p->state);
    if (p->step > 0) {
        str_printf(line, "  step %" PRId64, p->step);
        if (p->steps > 0)
            str_printf(line, " of %" PRId64, p->steps);
        if (p->terminal && p->steps > 0)
            add_bar(line, (double)p->step / (double)p->steps);
    } else if (*p->reason) {
        str_printf(line, "  %s", p->reason);
    }
    add_value(line, "loss", p->loss);
    add_value(line, "accuracy", p->accuracy);
    add_value(line, "validation", p->val_accuracy);
    if (p->rate >= 0)
        str_printf(line, "  %.0f examples/s", p->rate);
    if (strcmp(p->state, "running") == 0)
        add_left(line, p);
}

/* Cuts a line of UTF-8 to the width of the terminal. */
static void cut_to_width(struct str *line)
{
    struct winsize window;
    int width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 20
                    ? window.ws_col - 1
                    : 119;
    for (size_t i = 0; i < line->size; i++) {
        if (((unsigned char)line->data[i] & 0xc0) != 0x80 && width-- == 0) {
            line->size = i;
            line->data[i] = 0;
        }
    }
}

static void show(struct progress *p, bool whole)
{
    uint64_t now = clock_monotonic_us();
    uint64_t pause = p->terminal ? PROGRESS_DRAW_US : PROGRESS_PLAIN_US;
    if (p->options->json || (!whole && now - p->shown_us < pause))
        return;
    p->shown_us = now;
    struct str line = {0};
    make_line(p, &line);
    if (p->terminal) {
        cut_to_width(&line);
        printf("\r\033[K%s%s", str_text(&line), whole ? "\n" : "");
        p->drawn = !whole;
    } else {
        puts(str_text(&line));
    }
    fflush(stdout);
    str_release(&line);
}

/* --- events --- */

static void take_points(struct progress *p, json_t *data)
{
    size_t index;
    json_t *point;
    json_array_foreach(json_object_get(data, "points"), index, point)
    {
        int64_t step = json_integer_value(json_object_get(point, "step"));
        const char *name = json_string_value(json_object_get(point, "name"));
        if (name)
            take_value(p, name, json_number_value(json_object_get(point, "value")));
        if (!p->first_us) {
            p->first_us = clock_monotonic_us();
            p->first_step = step;
        }
        p->step = step;
    }
}

static bool take_state(struct progress *p, json_t *data)
{
    const char *state = json_string_value(json_object_get(data, "state"));
    const char *text = json_string_value(json_object_get(data, "text"));
    bool changed = state && strcmp(state, p->state) != 0;
    if (state)
        snprintf(p->state, sizeof(p->state), "%s", state);
    snprintf(p->reason, sizeof(p->reason), "%s", text ? text : "");
    return changed;
}

static bool on_event(void *self, const char *topic, json_t *event)
{
    struct progress *p = self;
    struct error ignored;
    json_t *data = json_object_get(event, "data");
    bool changed = false;
    if (p->options->json) {
        char *text = json_dumps(event, JSON_COMPACT);
        puts(text ? text : "");
        fflush(stdout);
        free(text);
    }
    if (strcmp(topic, "job.state") == 0)
        changed = take_state(p, data);
    else if (strcmp(topic, "job.metrics") == 0)
        take_points(p, data);
    if ((changed || p->steps < 0) && !load(p, &ignored))
        changed = true; /* the server has just gone: the next event will tell */
    bool ended = is_final(p->state);
    show(p, changed && (ended || !p->terminal));
    return !ended;
}

static void on_lost(void *self, bool is_lost)
{
    struct progress *p = self;
    if (p->options->json || !is_lost)
        return;
    if (p->terminal) {
        printf("\r\033[K#%" PRId64
               " %s  the server does not answer; the job runs on, waiting to go on watching",
               p->number, p->name);
        p->drawn = true;
    }
    fflush(stdout);
}

static int exit_code(const struct progress *p)
{
    if (strcmp(p->state, "succeeded") == 0)
        return CLI_OK;
    return strcmp(p->state, "cancelled") == 0 ? CLI_CANCELLED : CLI_FAILED;
}

int progress_show(struct client *client, const struct progress_options *options)
{
    struct error err;
    struct progress p = {.client = client,
                         .options = options,
                         .terminal = !options->json && isatty(STDOUT_FILENO),
                         .steps = -1,
                         .loss = -1,
                         .accuracy = -1,
                         .val_accuracy = -1,
                         .rate = -1};
    if (!load(&p, &err))
        return cli_fail(&err);
    leave_text = options->after;
    signal(SIGINT, on_interrupt);
    show(&p, !p.terminal || is_final(p.state));
    if (!is_final(p.state)) {
        char *path = alloc_printf("/api/v1/jobs/%s/events?topics=state,metrics", options->job);
        struct client_follower follower = {on_event, on_lost, NULL, &p};
        bool ok = client_follow(client, path, &follower, &err);
        free(path);
        if (!ok)
            return cli_fail(&err);
    }
    if (p.drawn)
        puts("");
    if (*p.reason && !options->json && strcmp(p.state, "succeeded") != 0)
        printf("%s: %s\n", p.state, p.reason);
    return exit_code(&p);
}
