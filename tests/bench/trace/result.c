/* result.c - sums up a replay. */

#include "tests/bench/trace/result.h"

#include "base/alloc.h"

static int gpus_of(const struct workload_job *job)
{
    return job->gpus * job->replicas;
}

void trace_use_starts(struct trace_use *use, const struct workload_job *job)
{
    use->gpus += gpus_of(job);
    use->cpus += job->cpus * job->replicas;
    use->projects[job->project] += gpus_of(job);
    use->waiting[job->project]--;
}

void trace_use_ends(struct trace_use *use, const struct workload_job *job)
{
    use->gpus -= gpus_of(job);
    use->cpus -= job->cpus * job->replicas;
    use->projects[job->project] -= gpus_of(job);
}

/* Jain's index: 1 when all have the same, 1/n when one has all. */
static double jain(double sum, double squares, int count)
{
    return count && squares > 0 ? sum * sum / (count * squares) : 1;
}

void trace_use_passes(struct trace_use *use, uint64_t from_us, uint64_t to_us)
{
    if (from_us >= use->span_us)
        return;
    double us = (double)(to_us - from_us), sum = 0, squares = 0;
    int count = 0;
    use->gpu_us += us * (double)use->gpus;
    use->cpu_us += us * (double)use->cpus;
    use->all_gpu_us += us * use->gpus_total;
    use->all_cpu_us += us * use->cpus_total;
    for (int i = 0; i < WORKLOAD_PROJECTS; i++) {
        if (!use->waiting[i])
            continue;
        double held = (double)use->projects[i];
        sum += held;
        squares += held * held;
        count++;
    }
    if (count < 2)
        return;
    use->contended_us += us;
    use->busy_gpu_us += us * (double)use->gpus;
    use->fair_us += us * jain(sum, squares, count);
}

bool trace_all_ended(const struct trace_job *jobs, int count)
{
    for (int i = 0; i < count; i++)
        if (!jobs[i].ended_us)
            return false;
    return true;
}

/* --- printing --- */

static int by_value(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static double at_part(const uint64_t *sorted, int count, int per_mille)
{
    return count ? (double)sorted[(int64_t)(count - 1) * per_mille / 1000] : 0;
}

static uint64_t wait_of(const struct workload_job *plan, const struct trace_job *job)
{
    uint64_t begin_us = 1000000 + plan->submit_us;
    return job->started_us > begin_us ? job->started_us - begin_us : 0;
}

static void print_waits(const char *name, const struct workload_job *plan,
                        const struct trace_job *jobs, int count, int size)
{
    uint64_t *waits = alloc_array((size_t)count, sizeof(*waits));
    double sum = 0;
    int found = 0;
    for (int i = 0; i < count; i++) {
        if (!jobs[i].attempts || (size >= 0 && plan[i].size != size))
            continue;
        waits[found] = wait_of(&plan[i], &jobs[i]);
        sum += (double)waits[found++];
    }
    qsort(waits, (size_t)found, sizeof(*waits), by_value);
    printf("\"%s\": {\"jobs\": %d, \"mean_s\": %.0f, \"p50_s\": %.0f, \"p90_s\": %.0f, "
           "\"p99_s\": %.0f, \"max_s\": %.0f}",
           name, found, sum / 1e6 / (found ? found : 1), at_part(waits, found, 500) / 1e6,
           at_part(waits, found, 900) / 1e6, at_part(waits, found, 990) / 1e6,
           at_part(waits, found, 1000) / 1e6);
    free(waits);
}

/* Of each project the mean of (wait + work) / work, work below 10 minutes as 10 minutes. */
static void print_slowdowns(const struct workload_job *plan, const struct trace_job *jobs,
                            int count)
{
    double sums[WORKLOAD_PROJECTS] = {0}, sum = 0, squares = 0, all = 0;
    int counts[WORKLOAD_PROJECTS] = {0}, projects = 0;
    for (int i = 0; i < count; i++) {
        double work = plan[i].work_us < 600e6 ? 600e6 : (double)plan[i].work_us;
        double slower = ((double)wait_of(&plan[i], &jobs[i]) + work) / work;
        sums[plan[i].project] += slower;
        counts[plan[i].project]++;
        all += slower;
    }
    for (int i = 0; i < WORKLOAD_PROJECTS; i++) {
        if (counts[i] < 20)
            continue;
        double mean = sums[i] / counts[i];
        sum += mean;
        squares += mean * mean;
        projects++;
    }
    printf("\"slowdown_mean\": %.2f, \"slowdown_jain\": %.3f, \"projects\": %d", all / count,
           jain(sum, squares, projects), projects);
}

void trace_result_print(int nodes, const struct workload_job *plan,
                        const struct trace_job *jobs, int count, const struct trace_use *use,
                        struct trace_passes *passes)
{
    qsort(passes->took_us, (size_t)passes->count, sizeof(*passes->took_us), by_value);
    printf("{\"nodes\": %d, \"gpus\": %d, \"jobs\": %d, \"attempts\": %ld, \"preempted\": %ld, "
           "\"wait\": {",
           nodes, use->gpus_total, count, passes->attempts, passes->preempted);
    print_waits("all", plan, jobs, count, -1);
    for (int size = 0; size < WORKLOAD_CLASSES; size++) {
        printf(", ");
        print_waits(workload_size_name(size), plan, jobs, count, size);
    }
    printf("}, \"gpu_use\": %.3f, \"gpu_use_contended\": %.3f, \"cpu_use\": %.3f, "
           "\"contended\": %.3f, \"held_jain\": %.3f, ",
           use->gpu_us / use->all_gpu_us,
           use->contended_us > 0 ? use->busy_gpu_us / (use->contended_us * use->gpus_total) : 0,
           use->cpu_us / use->all_cpu_us, use->contended_us / (double)use->span_us,
           use->contended_us > 0 ? use->fair_us / use->contended_us : 1);
    print_slowdowns(plan, jobs, count);
    printf(", \"batches\": %d, \"batch_p50_ms\": %.2f, \"batch_p99_ms\": %.2f, "
           "\"batch_max_ms\": %.2f, \"took_s\": %.1f, \"jobs_per_s\": %.0f}\n",
           passes->count, at_part(passes->took_us, passes->count, 500) / 1e3,
           at_part(passes->took_us, passes->count, 990) / 1e3,
           at_part(passes->took_us, passes->count, 1000) / 1e3, passes->took_s,
           count / passes->took_s);
}
