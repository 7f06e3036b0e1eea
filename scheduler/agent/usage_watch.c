/*
 * usage_watch.c - samples what running tasks use, into an event file of each.
 *
 * DESIGN: the file lies in a folder of its own, hw/, so that TensorBoard on the attempt's
 * folder takes it for another run; from there it is shipped like every other.  Its steps are
 * seconds since 1970, and go on over attempts.  An agent that starts anew begins another file:
 * the last record of the one before may be torn.  The longer a task runs, the rarer the
 * samples.
 */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "proto/tfevent.h"
#include "scheduler/agent/internal.h"
#include "scheduler/agent/usage.h"

#define FIRST_US UINT64_C(2000000) /* between samples of the first ten seconds */
#define USUAL_US UINT64_C(5000000)
#define LONGEST_US UINT64_C(60000000)
#define YOUNG_US UINT64_C(10000000)
#define SAMPLES_OF_AGE 720
#define TOGETHER_US UINT64_C(500000) /* those due so soon are looked at as well */

static uint64_t interval_us(uint64_t age_us)
{
    if (age_us < YOUNG_US)
        return FIRST_US;
    uint64_t us = age_us / SAMPLES_OF_AGE;
    return us < USUAL_US ? USUAL_US : us < LONGEST_US ? us : LONGEST_US;
}

uint64_t usage_watch_next_us(const struct agent *agent)
{
    uint64_t next_us = UINT64_MAX;
    for (int i = 0; i < agent->core.tasks_count; i++) {
        const struct core_task *task = &agent->core.tasks[i];
        uint64_t due_us = attempt_usage(task->attempt)->due_us;
        if (attempt_shim(task->attempt) && due_us && due_us < next_us)
            next_us = due_us;
    }
    return next_us;
}

/* --- writing --- */

/* All of it or nothing: behind half a record nothing can be read. */
static bool append(const char *path, const struct str *text)
{
    struct stat before;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool open_ok = fd >= 0 && fstat(fd, &before) == 0;
    bool ok = open_ok && write(fd, text->data, text->size) == (ssize_t)text->size;
    if (open_ok && !ok && ftruncate(fd, before.st_size) != 0) {
        /* Then the next sample begins another file. */
    }
    if (fd >= 0)
        close(fd);
    return ok;
}

static void write_sample(struct core_task *task, const struct tfevent_scalar *scalars,
                         int count)
{
    struct usage *usage = attempt_usage(task->attempt);
    struct str text = {0};
    char *folder = alloc_printf("%s/" USAGE_FOLDER, attempt_folder(task->attempt));
    double now_s = (double)clock_wall_us() / 1e6;
    int64_t step = (int64_t)now_s;
    usage->step = step > usage->step ? step : usage->step + 1; /* clocks go back */
    if (!usage->file) {
        usage->file = (int64_t)clock_wall_us();
        (void)mkdir(folder, 0700);
        tfevent_add_version(&text, now_s, "trainyard agent");
    }
    char *path = alloc_printf("%s/events.out.tfevents.%lld", folder, (long long)usage->file);
    tfevent_add_scalars(&text, now_s, usage->step, scalars, count);
    if (append(path, &text)) {
        task->to_ship = true;
    } else {
        log_line(LOG_WARN, "usage", "file=%s msg=\"no sample was written\"", path);
        usage->file = 0;
    }
    str_release(&text);
    free(path);
    free(folder);
}

/* --- sampling --- */

/* What the task's GPUs do, as the driver last said; false: it does not tell. */
static bool gpus_of(const struct agent *agent, const struct attempt *attempt, double *busy,
                    double *bytes)
{
    uint64_t mask = attempt_gpus(attempt);
    bool known = false;
    *busy = *bytes = 0;
    for (int g = 0; g < agent->gpus.count; g++) {
        const struct gpu *gpu = &agent->gpus.list[g];
        if (!(mask >> g & 1) || gpu->lost || gpu->utilization < 0)
            continue;
        *busy += gpu->utilization / 100.0;
        *bytes += (double)gpu->used_bytes;
        known = true;
    }
    return known;
}

static struct tfevent_scalar rate(const char *name, int64_t now, int64_t last, double seconds)
{
    return (struct tfevent_scalar){name,
                                   (float)(now > last ? (double)(now - last) / seconds : 0)};
}

static void sample(struct agent *agent, struct core_task *task, const struct usage_sum *now,
                   double seconds)
{
    const struct usage_sum *last = &attempt_usage(task->attempt)->last;
    struct tfevent_scalar scalars[8];
    int count = 0;
    double cpu = now->cpu_seconds - last->cpu_seconds, busy, bytes;
    scalars[count++] = (struct tfevent_scalar){"cpu", (float)(cpu > 0 ? cpu / seconds : 0)};
    scalars[count++] = (struct tfevent_scalar){"memory", (float)now->memory_bytes};
    if (now->read_bytes >= 0 && last->read_bytes >= 0) {
        scalars[count++] = rate("disk_read", now->read_bytes, last->read_bytes, seconds);
        scalars[count++] = rate("disk_write", now->written_bytes, last->written_bytes, seconds);
    }
    if (now->received_bytes >= 0 && last->received_bytes >= 0) {
        scalars[count++] =
            rate("network_receive", now->received_bytes, last->received_bytes, seconds);
        scalars[count++] = rate("network_send", now->sent_bytes, last->sent_bytes, seconds);
    }
    if (gpus_of(agent, task->attempt, &busy, &bytes)) {
        scalars[count++] = (struct tfevent_scalar){"gpu", (float)busy};
        scalars[count++] = (struct tfevent_scalar){"gpu_memory", (float)bytes};
    }
    write_sample(task, scalars, count);
}

static void look_at(struct agent *agent, struct core_task *task, struct usage_table *table,
                    uint64_t now_us)
{
    struct usage *usage = attempt_usage(task->attempt);
    struct usage_sum now;
    usage->due_us = now_us + interval_us(now_us - usage->began_us);
    if (!usage_of(table, attempt_shim(task->attempt), &usage->network, &now))
        return;
    if (usage->looked_us && now_us > usage->looked_us)
        sample(agent, task, &now, (double)(now_us - usage->looked_us) / 1e6);
    usage->last = now;
    usage->looked_us = now_us;
}

void usage_watch(struct agent *agent)
{
    uint64_t now_us = clock_monotonic_us();
    struct usage_table *table = NULL;
    for (int i = 0; i < agent->core.tasks_count; i++) {
        struct usage *usage = attempt_usage(agent->core.tasks[i].attempt);
        if (usage->due_us || !attempt_shim(agent->core.tasks[i].attempt))
            continue;
        usage->began_us = now_us;
        usage->due_us = now_us + FIRST_US;
        if (!usage->adopted) /* it has used nothing yet */
            usage->looked_us = now_us;
    }
    if (now_us < usage_watch_next_us(agent))
        return;
    for (int i = 0; i < agent->core.tasks_count; i++) {
        struct core_task *task = &agent->core.tasks[i];
        if (!attempt_shim(task->attempt) ||
            attempt_usage(task->attempt)->due_us > now_us + TOGETHER_US)
            continue;
        if (!table)
            table = usage_look();
        look_at(agent, task, table, now_us);
    }
    usage_free(table);
}
