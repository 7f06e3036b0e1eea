/* device.c - device names: "/job:worker/replica:0/task:0/device:GPU:1" and parts of it. */

#include <ctype.h>

#include "base/error.h"
#include "runtime/device.h"

static const char *const type_names[DEVICE_TYPES] = {[CPU] = "CPU", [GPU] = "GPU"};

const char *device_type_name(enum device_type type)
{
    assert(type >= 0 && type < DEVICE_TYPES);
    return type_names[type];
}

/* Takes [A-Za-z][A-Za-z0-9_]* or "*" (then `out` is "") from `*at`. */
static bool take_word(const char **at, char *out, size_t out_size)
{
    const char *start = *at;
    out[0] = '\0';
    if (*start == '*') {
        *at = start + 1;
        return true;
    }
    if (!isalpha((unsigned char)*start))
        return false;
    const char *end = start;
    while (isalnum((unsigned char)*end) || *end == '_')
        end++;
    size_t size = (size_t)(end - start);
    if (size >= out_size)
        return false;
    memcpy(out, start, size);
    out[size] = '\0';
    *at = end;
    return true;
}

/* Takes digits or "*" (then -1). */
static bool take_number(const char **at, int *out)
{
    const char *c = *at;
    *out = -1;
    if (*c == '*') {
        *at = c + 1;
        return true;
    }
    if (!isdigit((unsigned char)*c))
        return false;
    int64_t number = 0;
    for (; isdigit((unsigned char)*c); c++) {
        number = number * 10 + (*c - '0');
        if (number > INT32_MAX)
            return false;
    }
    *out = (int)number;
    *at = c;
    return true;
}

static bool take_text(const char **at, const char *text)
{
    size_t size = strlen(text);
    if (strncmp(*at, text, size) != 0)
        return false;
    *at += size;
    return true;
}

/* "/job:x", "/device:GPU:0", or the old "/gpu:0". */
static bool take_part(const char **at, struct device_name *name)
{
    if (take_text(at, "/job:"))
        return take_word(at, name->job, sizeof(name->job));
    if (take_text(at, "/replica:"))
        return take_number(at, &name->replica);
    if (take_text(at, "/task:"))
        return take_number(at, &name->task);
    if (take_text(at, "/device:"))
        return take_word(at, name->type, sizeof(name->type)) &&
               (!take_text(at, ":") || take_number(at, &name->index));
    if (take_text(at, "/cpu:") || take_text(at, "/CPU:")) {
        memcpy(name->type, "CPU", 4);
        return take_number(at, &name->index);
    }
    if (take_text(at, "/gpu:") || take_text(at, "/GPU:")) {
        memcpy(name->type, "GPU", 4);
        return take_number(at, &name->index);
    }
    return false;
}

bool device_name_parse(const char *text, struct device_name *name, struct error *err)
{
    struct device_name parsed = {.replica = -1, .task = -1, .index = -1};
    const char *at = text;
    if (strcmp(text, "/") != 0) {
        while (*at)
            if (!take_part(&at, &parsed))
                return fail(err, INVALID, "Malformed device specification '%s'", text);
    }
    *name = parsed;
    return true;
}

const char *device_name_text(const struct device_name *name, char *out, size_t out_size)
{
    char replica[24] = "", task[24] = "", index[16] = "*";
    if (name->replica >= 0)
        snprintf(replica, sizeof(replica), "/replica:%d", name->replica);
    if (name->task >= 0)
        snprintf(task, sizeof(task), "/task:%d", name->task);
    if (name->index >= 0)
        snprintf(index, sizeof(index), "%d", name->index);
    bool device = name->type[0] || name->index >= 0;
    snprintf(out, out_size, "%s%s%s%s%s%s%s%s", name->job[0] ? "/job:" : "", name->job, replica,
             task, device ? "/device:" : "", device && !name->type[0] ? "*" : name->type,
             device ? ":" : "", device ? index : "");
    return out;
}

bool device_name_matches(const struct device_name *wish, const struct device_name *full)
{
    return (!wish->job[0] || !strcmp(wish->job, full->job)) &&
           (wish->replica < 0 || wish->replica == full->replica) &&
           (wish->task < 0 || wish->task == full->task) &&
           (!wish->type[0] || !strcmp(wish->type, full->type)) &&
           (wish->index < 0 || wish->index == full->index);
}

/* Both are set and differ. */
static bool words_differ(const char *a, const char *b)
{
    return a[0] && b[0] && strcmp(a, b) != 0;
}

static bool numbers_differ(int a, int b)
{
    return a >= 0 && b >= 0 && a != b;
}

void device_name_fill(struct device_name *name, const struct device_name *from)
{
    if (!name->job[0])
        memcpy(name->job, from->job, sizeof(name->job));
    if (name->replica < 0)
        name->replica = from->replica;
    if (name->task < 0)
        name->task = from->task;
    if (!name->type[0])
        memcpy(name->type, from->type, sizeof(name->type));
    if (name->index < 0)
        name->index = from->index;
}

static bool fail_merge(const struct device_name *a, const struct device_name *b,
                       const char *what, struct error *err)
{
    char first[160], second[160];
    return fail(err, INVALID, "Cannot merge devices with incompatible %s: '%s' and '%s'", what,
                device_name_text(a, first, sizeof(first)),
                device_name_text(b, second, sizeof(second)));
}

bool device_name_same_task(const struct device_name *a, const struct device_name *b)
{
    return a->task == b->task && a->replica == b->replica && !strcmp(a->job, b->job);
}

bool device_same_task(const struct device *a, const struct device *b)
{
    return a == b || device_name_same_task(&a->parts, &b->parts);
}

bool device_name_merge(struct device_name *into, const struct device_name *extra, bool soft,
                       struct error *err)
{
    struct device_name merged = *into;
    if (words_differ(merged.job, extra->job))
        return fail_merge(into, extra, "jobs", err);
    if (numbers_differ(merged.replica, extra->replica))
        return fail_merge(into, extra, "replicas", err);
    if (numbers_differ(merged.task, extra->task))
        return fail_merge(into, extra, "tasks", err);
    bool types = words_differ(merged.type, extra->type);
    bool indexes = numbers_differ(merged.index, extra->index);
    if (types && !soft)
        return fail_merge(into, extra, "types", err);
    if (indexes && !soft)
        return fail_merge(into, extra, "ids", err);

    if (!merged.job[0])
        memcpy(merged.job, extra->job, sizeof(merged.job));
    if (merged.replica < 0)
        merged.replica = extra->replica;
    if (merged.task < 0)
        merged.task = extra->task;
    if (types)
        merged.type[0] = '\0';
    else if (!merged.type[0])
        memcpy(merged.type, extra->type, sizeof(merged.type));
    if (types || indexes)
        merged.index = -1;
    else if (merged.index < 0)
        merged.index = extra->index;
    *into = merged;
    return true;
}
