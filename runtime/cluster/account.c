/* account.c - see account.h. */

#include "runtime/cluster/account.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/waits.h"

#define WORKERS "/job:worker/"

struct entry { /* of one task */
    char task[WAITS_TASK_BYTES];
    struct waits waits;          /* of all its parts */
    uint64_t own_ns, own_max_ns; /* until its share was done */
    int64_t parts;
    float recent_us[ACCOUNT_RECENT]; /* by step, in turn; below 0: it had no part */
};

struct account {
    pthread_mutex_t lock; /* guards: all below */
    struct entry *entries;
    int count, capacity;
    int64_t steps;
};

struct account *account_new(void)
{
    struct account *account = alloc_bytes(sizeof(*account));
    pthread_mutex_init(&account->lock, NULL);
    return account;
}

static void clear(struct account *account)
{
    for (int i = 0; i < account->count; i++)
        waits_release(&account->entries[i].waits);
    account->count = 0;
    account->steps = 0;
}

void account_free(struct account *account)
{
    if (!account)
        return;
    clear(account);
    free(account->entries);
    pthread_mutex_destroy(&account->lock);
    free(account);
}

static struct entry *entry_of(struct account *account, const char *task)
{
    for (int i = 0; i < account->count; i++)
        if (!strcmp(account->entries[i].task, task))
            return &account->entries[i];
    account->entries = alloc_grow(account->entries, account->count, &account->capacity,
                                  sizeof(*account->entries));
    struct entry *entry = &account->entries[account->count++];
    *entry = (struct entry){0};
    for (int i = 0; i < ACCOUNT_RECENT; i++)
        entry->recent_us[i] = -1;
    snprintf(entry->task, sizeof(entry->task), "%s", task);
    return entry;
}

/* What a worker waits for other workers, it would not if they were as fast. */
static uint64_t own_of(const char *task, const struct waits *waits, uint64_t after_ns)
{
    uint64_t others_ns = 0;
    for (int i = 0; i < waits->rows_count; i++) {
        const char *from = waits->rows[i].task;
        if (!strncmp(from, WORKERS, strlen(WORKERS)) && strcmp(from, task) != 0)
            others_ns += waits->rows[i].wait_ns;
    }
    return after_ns > others_ns ? after_ns - others_ns : 0;
}

void account_part(struct account *account, const char *task, const struct waits *waits,
                  uint64_t after_ns)
{
    uint64_t own_ns = own_of(task, waits, after_ns);
    pthread_mutex_lock(&account->lock);
    struct entry *entry = entry_of(account, task);
    struct waits *sum = &entry->waits;
    entry->parts++;
    entry->own_ns += own_ns;
    entry->own_max_ns = own_ns > entry->own_max_ns ? own_ns : entry->own_max_ns;
    entry->recent_us[account->steps % ACCOUNT_RECENT] = (float)own_ns / 1e3F;
    sum->total_ns += waits->total_ns;
    sum->send_ns += waits->send_ns;
    for (int i = 0; i < waits->rows_count; i++) {
        const struct waits_row *from = &waits->rows[i];
        struct waits_row *row = waits_of(sum, from->task);
        row->wait_ns += from->wait_ns;
        row->receive_ns += from->receive_ns;
        row->bytes += from->bytes;
        row->tensors += from->tensors;
    }
    pthread_mutex_unlock(&account->lock);
}

void account_step(struct account *account)
{
    pthread_mutex_lock(&account->lock);
    account->steps++;
    for (int i = 0; i < account->count; i++)
        account->entries[i].recent_us[account->steps % ACCOUNT_RECENT] = -1;
    pthread_mutex_unlock(&account->lock);
}

/* "worker:1" of "/job:worker/replica:0/task:1"; others as they are. */
static void short_name(const char *task, char *name, size_t size)
{
    char job[WAITS_TASK_BYTES];
    int replica, index;
    if (sscanf(task, "/job:%79[^/]/replica:%d/task:%d", job, &replica, &index) == 3)
        snprintf(name, size, "%s:%d", job, index);
    else
        snprintf(name, size, "%s", task);
}

static void add_name(struct str *json, const char *task)
{
    char name[WAITS_TASK_BYTES + 16];
    short_name(task, name, sizeof(name));
    str_add_json(json, name, strlen(name));
}

static void add_rows(struct str *json, const struct entry *entry, double steps)
{
    int added = 0;
    for (int i = 0; i < entry->waits.rows_count; i++) {
        const struct waits_row *row = &entry->waits.rows[i];
        if (!row->task[0] || !strcmp(row->task, entry->task))
            continue;
        str_add(json, added++ ? ", {\"task\": " : "{\"task\": ");
        add_name(json, row->task);
        str_printf(json,
                   ", \"wait_us\": %.1f, \"receive_us\": %.1f, \"bytes\": %.0f, "
                   "\"tensors\": %.1f}",
                   (double)row->wait_ns / 1e3 / steps, (double)row->receive_ns / 1e3 / steps,
                   (double)row->bytes / steps, (double)row->tensors / steps);
    }
}

static void add_recent(const struct account *account, const struct entry *entry,
                       struct account_arrival *arrival)
{
    int64_t first = account->steps < ACCOUNT_RECENT ? 0 : account->steps - ACCOUNT_RECENT + 1;
    for (int64_t step = first; step < account->steps; step++)
        arrival->recent_us[arrival->recent_count++] = entry->recent_us[step % ACCOUNT_RECENT];
}

int account_arrivals(struct account *account, struct account_arrival *arrivals, int max)
{
    int count = 0;
    pthread_mutex_lock(&account->lock);
    for (int i = 0; i < account->count && count < max; i++) {
        const struct entry *entry = &account->entries[i];
        if (strncmp(entry->task, WORKERS, strlen(WORKERS)) != 0 || !entry->parts)
            continue;
        struct account_arrival *arrival = &arrivals[count++];
        short_name(entry->task, arrival->task, sizeof(arrival->task));
        arrival->recent_count = 0;
        add_recent(account, entry, arrival);
        arrival->us = (double)entry->own_ns / 1e3 / (double)entry->parts;
        arrival->max_us = (double)entry->own_max_ns / 1e3;
        arrival->steps = entry->parts;
    }
    pthread_mutex_unlock(&account->lock);
    return count;
}

void account_take(struct account *account, int64_t count, struct str *json)
{
    double steps = count > 0 ? (double)count : 1;
    pthread_mutex_lock(&account->lock);
    str_add(json, "[");
    for (int i = 0; i < account->count; i++) {
        const struct entry *entry = &account->entries[i];
        uint64_t wait_ns = 0, receive_ns = 0;
        for (int r = 0; r < entry->waits.rows_count; r++) {
            wait_ns += entry->waits.rows[r].wait_ns;
            receive_ns += entry->waits.rows[r].receive_ns;
        }
        str_add(json, i ? ",\n {\"task\": " : "{\"task\": ");
        add_name(json, entry->task);
        str_printf(json,
                   ", \"us\": %.1f, \"wait_us\": %.1f, \"receive_us\": %.1f, "
                   "\"send_us\": %.1f, \"from\": [",
                   (double)entry->waits.total_ns / 1e3 / steps, (double)wait_ns / 1e3 / steps,
                   (double)receive_ns / 1e3 / steps,
                   (double)entry->waits.send_ns / 1e3 / steps);
        add_rows(json, entry, steps);
        str_add(json, "]}");
    }
    str_add(json, "]");
    clear(account);
    pthread_mutex_unlock(&account->lock);
}
