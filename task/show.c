/* show.c - progress of a training run as text or JSON lines. */

#include "task/show.h"

#include <math.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/model/model.h"

#define SHOW_TERMINAL_US 100000
#define SHOW_LINES_US 1000000

void show_init(struct show *show, const struct spec *spec, bool json)
{
    *show = (struct show){.json = json, .terminal = !json && isatty(STDOUT_FILENO)};
    show->held_out = spec && spec->data.validation;
}

/* --- pieces --- */

/* A JSON number; null for what JSON cannot say. */
static void add_number(struct str *out, const char *field, double value)
{
    if (isfinite(value))
        str_printf(out, "\"%s\": %.9g", field, value);
    else
        str_printf(out, "\"%s\": null", field);
}

/* "loss": 0.1, "accuracy": 0.9 */
static void add_metrics(struct str *out, const struct show *show, const char *prefix,
                        const double *values)
{
    char field[100];
    for (int i = 0; i < show->facts->metrics_count; i++) {
        str_add(out, i ? ", " : "");
        snprintf(field, sizeof(field), "%s%s", prefix, show->facts->metrics[i].name);
        add_number(out, field, values[i]);
    }
}

/* loss 0.1000  accuracy 0.9000 */
static void tell_metrics(struct str *out, const struct show *show, const char *part,
                         const double *values)
{
    for (int i = 0; i < show->facts->metrics_count; i++)
        str_printf(out, "%s%s%s %.4f", i ? "  " : "", part, show->facts->metrics[i].name,
                   values[i]);
}

static void put(struct str *line)
{
    str_add_char(line, '\n');
    fwrite(line->data, 1, line->size, stdout);
    fflush(stdout);
    str_release(line);
}

/* Ends the line of progress that stands on the terminal. */
static void end_drawn(struct show *show)
{
    if (show->drawn)
        fputs("\r\x1b[K", stdout);
    show->drawn = false;
}

void show_line(struct show *show, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[2000];
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    end_drawn(show);
    struct str line = {0};
    if (show->json) {
        str_add(&line, "{\"event\": \"notice\", \"text\": ");
        str_add_json(&line, text, strlen(text));
        str_add_char(&line, '}');
    } else {
        str_add(&line, text);
    }
    put(&line);
}

/* 12,345 */
static const char *thousands(double value, char out[32])
{
    char digits[32];
    int size = snprintf(digits, sizeof(digits), "%.0f", value), at = 0;
    for (int i = 0; i < size && at < 30; i++) {
        if (i && (size - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

static const char *duration(double seconds, char out[32])
{
    long long s = (long long)(seconds + 0.5);
    if (s < 60)
        snprintf(out, 32, "%lld s", s);
    else if (s < 3600)
        snprintf(out, 32, "%lld min %02lld s", s / 60, s % 60);
    else
        snprintf(out, 32, "%lld h %02lld min", s / 3600, s / 60 % 60);
    return out;
}

/* --- the start --- */

void show_start(struct show *show, const struct spec *spec, const struct train_facts *facts)
{
    char examples[32], parameters[32], steps[32];
    show->facts = facts;
    if (!show->json) {
        show_line(show, "%s: %s parameters, %s examples of %s, %s step%s of %lld, %d thread%s",
                  spec->name, thousands((double)facts->parameters, parameters),
                  thousands((double)facts->examples, examples), spec->data.dataset,
                  thousands((double)facts->steps, steps), facts->steps == 1 ? "" : "s",
                  (long long)spec->data.batch_size, facts->threads,
                  facts->threads == 1 ? "" : "s");
        if (facts->resumed_from)
            show_line(show, "resumed after step %lld", (long long)facts->resumed_from);
        return;
    }
    struct str line = {0};
    str_add(&line, "{\"event\": \"start\", \"name\": ");
    str_add_json(&line, spec->name, strlen(spec->name));
    str_printf(
        &line,
        ", \"steps\": %lld, \"batch_size\": %lld, \"examples\": %lld, \"parameters\": %lld, "
        "\"threads\": %d, \"resumed_from\": %lld}",
        (long long)facts->steps, (long long)spec->data.batch_size, (long long)facts->examples,
        (long long)facts->parameters, facts->threads, (long long)facts->resumed_from);
    put(&line);
}

/* --- reports --- */

static void show_point(struct show *show, const struct train_report *report)
{
    int metrics = show->facts->metrics_count;
    for (int i = 0; i < metrics; i++)
        show->sums[i] += report->values[i];
    show->points++;
    uint64_t now_us = clock_monotonic_us();
    uint64_t every_us = show->terminal || show->json ? SHOW_TERMINAL_US : SHOW_LINES_US;
    if (report->step < report->steps && show->last_us && now_us - show->last_us < every_us)
        return;
    show->last_us = now_us;
    double means[SPEC_METRICS_MAX + 1];
    for (int i = 0; i < metrics; i++) {
        means[i] = show->sums[i] / show->points;
        show->sums[i] = 0;
    }
    show->points = 0;
    struct str line = {0};
    if (show->json) {
        str_printf(&line, "{\"event\": \"step\", \"step\": %lld, ", (long long)report->step);
        add_metrics(&line, show, "", means);
        str_add(&line, ", ");
        add_number(&line, "examples_per_second", report->examples_per_second);
        str_add_char(&line, '}');
        put(&line);
        return;
    }
    char rate[32], left[32];
    end_drawn(show);
    str_printf(&line, "step %lld/%lld  ", (long long)report->step, (long long)report->steps);
    tell_metrics(&line, show, "", means);
    str_printf(&line, "  %s examples/s", thousands(report->examples_per_second, rate));
    if (report->step < report->steps)
        str_printf(&line, "  %s left", duration(report->seconds_left, left));
    if (!show->terminal) {
        put(&line);
        return;
    }
    fputs(str_text(&line), stdout);
    fflush(stdout);
    show->drawn = true;
    str_release(&line);
}

static void show_evaluation(struct show *show, const struct train_report *report)
{
    struct str line = {0};
    end_drawn(show);
    if (show->json) {
        str_printf(&line, "{\"event\": \"evaluation\", \"step\": %lld, ",
                   (long long)report->step);
        add_metrics(&line, show, "val_", report->val_values);
        str_add_char(&line, '}');
    } else {
        str_printf(&line, "step %lld: ", (long long)report->step);
        tell_metrics(&line, show, show->held_out ? "validation " : "test ", report->val_values);
    }
    put(&line);
}

static void show_saved(struct show *show, const struct train_report *report)
{
    if (!show->json)
        return;
    struct str line = {0};
    str_printf(&line, "{\"event\": \"checkpoint\", \"step\": %lld, \"path\": ",
               (long long)report->step);
    str_add_json(&line, report->text, strlen(report->text));
    str_add_char(&line, '}');
    put(&line);
}

static void show_end(struct show *show, const struct train_report *report)
{
    char rate[32];
    if (!show->json) {
        show_line(show, "%s after step %lld, %s examples/s", report->text,
                  (long long)report->step, thousands(report->examples_per_second, rate));
        return;
    }
    struct str line = {0};
    str_printf(&line, "{\"event\": \"end\", \"step\": %lld, \"reason\": \"%s\", \"text\": ",
               (long long)report->step, report->end == TRAIN_FINISHED ? "finished" : "stopped");
    str_add_json(&line, report->text, strlen(report->text));
    str_add(&line, ", ");
    add_number(&line, "examples_per_second", report->examples_per_second);
    str_add(&line, ", \"metrics\": {");
    add_metrics(&line, show, "", report->values);
    if (report->val_values) {
        str_add(&line, ", ");
        add_metrics(&line, show, "val_", report->val_values);
    }
    str_add(&line, "}}");
    put(&line);
}

void show_report(struct show *show, const struct train_report *report)
{
    switch (report->what) {
    case TRAIN_POINT:
        show_point(show, report);
        break;
    case TRAIN_EVALUATED:
        show_evaluation(show, report);
        break;
    case TRAIN_SAVED:
        show_saved(show, report);
        break;
    case TRAIN_NOTICE:
        show_line(show, "%s", report->text);
        break;
    case TRAIN_ENDED:
        show_end(show, report);
        break;
    }
}

void show_error(struct show *show, const struct error *err)
{
    end_drawn(show);
    fflush(stdout);
    fprintf(stderr, "trainyard: %s%s%s\n", err->pointer, *err->pointer ? ": " : "", err->text);
    if (!show->json)
        return;
    struct str line = {0};
    str_printf(&line, "{\"event\": \"error\", \"code\": \"%s\", \"text\": ",
               error_code_name(err->code));
    str_add_json(&line, err->text, strlen(err->text));
    str_add(&line, ", \"pointer\": ");
    str_add_json(&line, err->pointer, strlen(err->pointer));
    str_add_char(&line, '}');
    put(&line);
}
