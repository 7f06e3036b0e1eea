/* jobs_list.c - lists of jobs: which of them, in which order, a page at a time. */

#include <inttypes.h>
#include <math.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "db/jobs_order.h"
#include "server/api/api.h"
#include "server/job.h"
#include "server/job_cursor.h"
#include "server/job_filter.h"
#include "server/reply.h"
#include "server/request.h"

#define JOBS_LIST_US 1000000 /* to look for jobs that an expression lets through, */
#define SCAN_ROWS 200        /* so many at a time */

/* "running,queued" into bits. */
static bool parse_states(const char *text, uint32_t *states, struct error *err)
{
    while (text && *text) {
        char word[32];
        size_t size = strcspn(text, ",");
        enum job_state state;
        snprintf(word, sizeof(word), "%.*s", (int)(size < 31 ? size : 31), text);
        bool paused = strcmp(word, "paused") == 0; /* queued, and told to wait */
        if (!paused && !db_job_state_find(word, &state))
            return fail(
                err, INVALID,
                "state is '%s'; it can be queued, paused, allocated, starting, running, "
                "stopping, succeeded, failed, cancelled",
                word);
        *states |= (uint32_t)(paused ? BIT(DB_JOBS_PAUSED) : BIT(state));
        text += size + (text[size] == ',');
    }
    return true;
}

/* --- the order --- */

/* How a list is ordered, and behind what it begins. */
struct order {
    enum {
        BY_NUMBER,
        BY_CREATED,
        BY_NAME,
        BY_PRIORITY,
        BY_METRIC
    } by; /* BY_NUMBER: newest first */
    const char *metric;
    bool descending;
    struct db_ranked after;
};

static bool order_metric(struct order *order, const char *name)
{
    static const char prefix[] = "metrics.";
    if (strncmp(name, prefix, strlen(prefix)) != 0 || !name[strlen(prefix)])
        return false;
    order->by = BY_METRIC;
    order->metric = name + strlen(prefix);
    return true;
}

/* "name", "metrics.loss", or "-metrics.loss": the highest first. */
static bool order_read(const struct request *req, struct order *order, struct error *err)
{
    const char *text = request_query(req, "order_by");
    const char *cursor = request_query(req, "cursor");
    *order = (struct order){0};
    if (!text)
        return true;
    order->descending = *text == '-';
    const char *name = text + order->descending;
    if (strcmp(name, "created_at") == 0)
        order->by = BY_CREATED;
    else if (strcmp(name, "name") == 0)
        order->by = BY_NAME;
    else if (strcmp(name, "priority") == 0)
        order->by = BY_PRIORITY;
    else if (!order_metric(order, name))
        return fail(
            err, INVALID,
            "order_by is '%.80s'; it can be created_at, name, priority or metrics.NAME, lowest "
            "first, or with a - before it, highest first",
            text);
    if (order->by >= BY_PRIORITY)
        order->after = order->descending ? (struct db_ranked){INT64_MAX, HUGE_VAL, NULL}
                                         : (struct db_ranked){-1, -HUGE_VAL, NULL};
    if (!cursor)
        return true;
    return order->by == BY_NAME ? job_cursor_read_text(cursor, &order->after, err)
                                : job_cursor_read(cursor, &order->after, err);
}

/* --- the list --- */

/* Which jobs, and until when they are looked for. */
struct wanted {
    struct db_jobs_filter filter;
    const struct filter *expression; /* NULL: none */
    struct order order;
    bool total;
    const char *fields; /* "number,name"; NULL: all */
    uint64_t until_us;  /* monotonic */
};

/* A page of jobs, and the cursor behind it, NULL at the end. */
struct page {
    struct db_job *jobs;
    int count;
    const char *next;
};

/* So many jobs behind `after`, whatever the filter says of them. */
static bool read_ranked(const struct job_reader *reader, const struct order *order,
                        struct db_ranked after, int limit, struct arena *arena,
                        struct db_ranked **ranked, int *count, struct error *err)
{
    if (order->by == BY_METRIC)
        return db_metrics_order(reader->metrics, order->metric, order->descending, after, limit,
                                arena, ranked, count, err);
    static const enum db_jobs_order orders[] = {[BY_CREATED] = DB_JOBS_BY_CREATED,
                                                [BY_NAME] = DB_JOBS_BY_NAME,
                                                [BY_PRIORITY] = DB_JOBS_BY_PRIORITY};
    return db_jobs_ordered(reader->control, orders[order->by], order->descending, after, limit,
                           arena, ranked, count, err);
}

/* Takes from the jobs in their order those that the filter lets through. */
static bool read_ordered(struct request *req, const struct job_reader *reader,
                         const struct wanted *wanted, struct page *page, struct error *err)
{
    const struct order *order = &wanted->order;
    int limit = wanted->filter.limit;
    struct db_ranked *ranked;
    struct db_ranked after = order->after, last = after;
    int ranked_count = 0;
    do {
        if (!read_ranked(reader, order, after, limit + 1, req->arena, &ranked, &ranked_count,
                         err))
            return false;
        for (int i = 0; i < ranked_count; i++) {
            struct db_job *job = &page->jobs[page->count];
            bool found;
            after = ranked[i];
            if (!db_jobs_pick(reader->control, &wanted->filter, after.job, req->arena, job,
                              &found, err) ||
                (found && !job_filter_match(wanted->expression, reader, job, &found, err)))
                return false;
            if (found && page->count == limit) { /* one more: there is another page */
                page->next = job_cursor_text(req->arena, &last);
                return true;
            }
            page->count += found;
            last = found ? after : last;
        }
        if (clock_monotonic_us() > wanted->until_us) {
            page->next = job_cursor_text(req->arena, &after);
            return true;
        }
    } while (ranked_count > limit);
    return true;
}

/* Newest first.  A page may come short of its limit when few are found for long: its cursor
 * goes on from there. */
static bool read_newest(struct request *req, const struct job_reader *reader,
                        const struct wanted *wanted, struct page *page, struct error *err)
{
    struct db_jobs_filter filter = wanted->filter;
    int64_t next, last = 0;
    int limit = filter.limit;
    if (wanted->expression && limit < SCAN_ROWS)
        filter.limit = SCAN_ROWS;
    do {
        struct db_job *jobs;
        int count;
        if (!db_jobs_list(reader->control, &filter, req->arena, &jobs, &count, &next, err))
            return false;
        for (int i = 0; i < count; i++) {
            bool found;
            if (!job_filter_match(wanted->expression, reader, &jobs[i], &found, err))
                return false;
            if (found && page->count == limit) {
                page->next = arena_printf(req->arena, "%" PRId64, last);
                return true;
            }
            if (!found)
                continue;
            page->jobs[page->count++] = jobs[i];
            last = jobs[i].number;
        }
        filter.before = next;
        if (next && (!wanted->expression || clock_monotonic_us() > wanted->until_us)) {
            page->next = arena_printf(req->arena, "%" PRId64, next);
            return true;
        }
    } while (next);
    return true;
}

/* Leaves of a job the fields whose names stand between commas. */
static json_t *only_fields(json_t *job, const char *fields)
{
    json_t *left = json_object();
    for (const char *at = fields; *at; at += *at == ',') {
        size_t size = strcspn(at, ",");
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)(size < 63 ? size : 63), at);
        json_t *value = json_object_get(job, name);
        if (value)
            json_object_set(left, name, value);
        at += size;
    }
    json_decref(job);
    return left;
}

/* How many there are in all; of what an expression chooses nobody counts. */
static bool add_total(const struct job_reader *reader, const struct wanted *wanted,
                      json_t *list, struct error *err)
{
    int64_t total;
    if (!wanted->total)
        return true;
    if (wanted->expression || wanted->order.by != BY_NUMBER)
        return fail(err, INVALID, "total is not possible with filter or order_by");
    return db_jobs_total(reader->control, &wanted->filter, &total, err) &&
           json_object_set_new(list, "total", json_integer(total)) == 0;
}

static bool reply_list(struct request *req, const struct wanted *wanted, struct error *err)
{
    struct job_reader reader;
    struct page page = {0};
    if (!job_reader_open(req, &reader, err))
        return false;
    json_t *items = json_array(), *list = json_object();
    page.jobs = arena_array(req->arena, (size_t)wanted->filter.limit + 1, sizeof(*page.jobs));
    bool ok = wanted->order.by ? read_ordered(req, &reader, wanted, &page, err)
                               : read_newest(req, &reader, wanted, &page, err);
    for (int i = 0; ok && i < page.count; i++) {
        json_t *json = job_json(req, &reader, &page.jobs[i], err);
        ok = json != NULL;
        if (ok && wanted->fields)
            json = only_fields(json, wanted->fields);
        json_array_append_new(items, json);
    }
    json_object_set_new(list, "items", items);
    json_object_set_new(list, "next_cursor", page.next ? json_string(page.next) : json_null());
    ok = ok && add_total(&reader, wanted, list, err);
    job_reader_close(req, &reader);
    if (ok)
        return reply_json(req, 200, list, err);
    json_decref(list);
    return false;
}

static bool read_truth(const struct request *req, const char *name, bool *value,
                       struct error *err)
{
    const char *text = request_query(req, name);
    *value = text && strcmp(text, "true") == 0;
    return !text || *value || strcmp(text, "false") == 0 ||
           fail(err, INVALID, "%s is '%.40s'; it can be true or false", name, text);
}

/*
 * GET /api/v1/jobs: newest first, by name, or by the last value of a metric, which leaves jobs
 * out that have none; a page at a time, stable while jobs are added.  `filter` is an
 * expression, see job_filter.h; `fields` leaves of each job the names between commas,
 * `total=true` adds how many there are.
 */
static bool jobs_list(struct request *req, struct error *err)
{
    struct db_viewer viewer = auth_viewer(&req->user);
    struct wanted wanted = {
        .filter = {.name = request_query(req, "name"),
                   .project = request_query(req, "project"),
                   .text = request_query(req, "q"),
                   .viewer = &viewer},
        .fields = request_query(req, "fields"),
        .until_us = clock_monotonic_us() + JOBS_LIST_US,
    };
    struct db_jobs_filter *filter = &wanted.filter;
    struct filter *expression;
    int64_t limit;
    if (!order_read(req, &wanted.order, err) || !job_filter_read(req, &expression, err) ||
        !request_query_int(req, "limit", 1, LIMIT_PAGE_ITEMS, 50, &limit, err) ||
        (wanted.order.by == BY_NUMBER &&
         !request_query_int(req, "cursor", 1, INT64_MAX, 0, &filter->before, err)) ||
        !read_truth(req, "archived", &filter->archived, err) ||
        !read_truth(req, "total", &wanted.total, err) ||
        !request_query_int(req, "array", 1, INT64_MAX, 0, &filter->array, err) ||
        !parse_states(request_query(req, "state"), &filter->states, err))
        return false;
    filter->limit = (int)limit;
    wanted.expression = expression;
    return reply_list(req, &wanted, err);
}

const struct route jobs_list_routes[] = {
    {"GET", "/api/v1/jobs", AUTH_IN_PROJECT(ROLE_VIEWER), jobs_list,
     "Jobs, newest first, by name or by a metric",
     "limit:integer cursor:string state:string name:string project:string q:string "
     "array:integer archived:boolean order_by:string filter:string fields:string total:boolean",
     NULL, 200, "JobList"},
    {0},
};
