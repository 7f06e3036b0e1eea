/* arguments.c - reads the arguments of a mode by a table. */

#include "task/arguments.h"

#include <errno.h>
#include <sched.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/nearest.h"

/* libgomp's; clang has no omp.h without a runtime of its own. */
void omp_set_num_threads(int threads);

static bool number(const struct argument *row, const char *text, struct error *err)
{
    char *end;
    errno = 0;
    *row->number = strtoll(text, &end, 10);
    if (errno || *end || end == text || *row->number < 0 || *row->number > row->max)
        return fail(err, INVALID, "%s is \"%s\", allowed: an integer from 0 to %lld", row->name,
                    text, (long long)row->max);
    return true;
}

static bool unknown(const char *found, const struct argument *rows, int rows_count,
                    struct error *err)
{
    const char **names = alloc_array((size_t)rows_count + 1, sizeof(*names));
    for (int i = 0; i < rows_count; i++)
        names[i] = rows[i].name;
    const char *nearest = nearest_name(found, names);
    fail(err, INVALID, "unknown argument \"%s\"%s%s%s (--help tells what there is)", found,
         nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    free(names);
    return false;
}

bool arguments_read(int argc, char **argv, const struct argument *rows, int rows_count,
                    const char **words, int words_max, int *words_count, struct error *err)
{
    *words_count = 0;
    for (int i = 0; i < argc; i++) {
        const struct argument *row = rows, *end = rows + rows_count;
        while (row < end && strcmp(row->name, argv[i]) != 0)
            row++;
        if (row == end) {
            bool is_word = argv[i][0] != '-' || !argv[i][1];
            if (!is_word || *words_count == words_max)
                return unknown(argv[i], rows, rows_count, err);
            words[(*words_count)++] = argv[i];
        } else if (row->flag) {
            *row->flag = true;
        } else if (++i == argc) {
            return fail(err, INVALID, "%s wants a value", row->name);
        } else if (row->text) {
            *row->text = argv[i];
        } else if (!number(row, argv[i], err)) {
            return false;
        }
    }
    return true;
}

int arguments_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set))
        return 1;
    return CPU_COUNT(&set);
}

int arguments_set_threads(int64_t threads)
{
    int count = threads ? (int)threads : arguments_cpus();
    omp_set_num_threads(count);
    return count;
}

int arguments_exit_code(const struct error *err)
{
    return err->code == INTERNAL ? 1 : 2;
}
