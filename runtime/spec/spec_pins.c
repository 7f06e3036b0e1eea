/* spec_pins.c - which layers are computed on which device: placement.pins. */

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/device.h"
#include "runtime/spec/spec_internal.h"

#define PINS_MAX 1000

/* The pattern goes back to its last star alone, so it takes no more than size times size. */
bool spec_pin_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *from = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            from = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

const char *spec_pin_of(const struct spec *spec, const char *layer)
{
    for (int i = 0; i < spec->pins_count; i++)
        if (spec_pin_matches(spec->pins[i].pattern, layer))
            return spec->pins[i].device;
    return NULL;
}

/* Its first device, or what all tasks have in common. */
static void task_device(const struct spec *spec, int role, int index, struct device_name *out)
{
    *out = (struct device_name){.replica = 0, .task = index, .index = 0};
    snprintf(out->job, sizeof(out->job), "%s",
             spec_tasks(spec) > 1 ? spec_role_name((enum spec_role)role) : "localhost");
    snprintf(out->type, sizeof(out->type), "%s", device_type_name(CPU));
}

/* Whether one of the spec's tasks is meant; which device of it, only the task can tell. */
static bool is_there(const struct spec *spec, struct device_name wish)
{
    struct device_name task;
    wish.type[0] = '\0';
    wish.index = -1;
    for (int role = 0; role < SPEC_ROLES; role++) {
        for (int i = 0; i < spec->tasks[role].replicas; i++) {
            task_device(spec, role, i, &task);
            if (spec_tasks(spec) == 1 && !strcmp(wish.job, spec_role_name(role)))
                snprintf(task.job, sizeof(task.job), "%s", wish.job);
            if (device_name_matches(&wish, &task))
                return true;
        }
    }
    return false;
}

/* As TensorFlow words it. */
static bool fail_device(const struct spec_object *pins, const struct spec *spec,
                        const struct spec_pin *pin, const char *layer)
{
    enum { TOLD = 8 };
    struct str known = {0};
    struct device_name task;
    char text[160];
    int count = 0;
    for (int role = SPEC_ROLES - 1; role >= 0; role--) {
        for (int i = 0; i < spec->tasks[role].replicas; i++, count++) {
            task_device(spec, role, i, &task);
            if (count < TOLD)
                str_printf(&known, "%s%s", count ? ", " : "",
                           device_name_text(&task, text, sizeof(text)));
        }
    }
    error_at(pins->err, spec_read_pointer(pins, pin->pattern, -1), INVALID,
             "Cannot assign a device for operation %s: {{node %s}} was explicitly assigned to "
             "%s but available devices are [ %s%s ]. Make sure the device specification refers "
             "to a valid device.",
             layer, layer, pin->device, str_text(&known), count > TOLD ? ", ..." : "");
    str_release(&known);
    return false;
}

static bool check_pin(const struct spec_object *pins, const struct spec *spec,
                      struct spec_pin *pin)
{
    const char *pointer = spec_read_pointer(pins, pin->pattern, -1), *layer = NULL;
    struct device_name wish;
    struct error err;
    char text[160];
    for (int i = 0; i < spec->layers_count && !layer; i++)
        if (spec_pin_matches(pin->pattern, spec->layers[i].name))
            layer = spec->layers[i].name;
    if (!layer)
        return error_at(pins->err, pointer, INVALID,
                        "no layer has a name like \"%s\", the first is \"%s\"", pin->pattern,
                        spec->layers[0].name);
    if (!device_name_parse(pin->device, &wish, &err))
        return error_at(pins->err, pointer, INVALID, "%s", err.text);
    if (!is_there(spec, wish))
        return fail_device(pins, spec, pin, layer);
    pin->device = arena_text(pins->arena, device_name_text(&wish, text, sizeof(text)));
    return true;
}

bool spec_parse_pins(const struct spec_object *placement, struct spec *spec)
{
    struct spec_object pins;
    const char *pattern;
    json_t *value;
    if (!spec_read_object(placement, "pins", &pins))
        return false;
    size_t count = json_object_size(pins.json);
    if (!count)
        return true;
    if (!spec->layers_count)
        return error_at(pins.err, pins.pointer, INVALID,
                        "pins are for models of layers, which this job has not");
    if (count > PINS_MAX)
        return error_at(pins.err, pins.pointer, INVALID, "%zu pins, allowed: at most %d", count,
                        PINS_MAX);
    struct spec_pin *list = arena_array(pins.arena, count, sizeof(*list));
    json_object_foreach(pins.json, pattern, value)
    {
        struct spec_pin *pin = &list[spec->pins_count];
        if (!*pattern || strlen(pattern) > LIMIT_NAME_BYTES)
            return error_at(pins.err, pins.pointer, INVALID,
                            "a pattern of %zu bytes, allowed: 1 to %d", strlen(pattern),
                            LIMIT_NAME_BYTES);
        pin->pattern = arena_text(pins.arena, pattern);
        if (!spec_read_required(&pins, pattern, "a device, as \"/job:worker/task:1\"") ||
            !spec_read_text(&pins, pattern, LIMIT_NAME_BYTES, &pin->device) ||
            !check_pin(&pins, spec, pin))
            return false;
        spec->pins_count++;
    }
    spec->pins = list;
    return true;
}

void spec_pins_write(const struct spec *spec, struct str *out)
{
    str_add(out, ", \"pins\": {");
    for (int i = 0; i < spec->pins_count; i++) {
        const struct spec_pin *pin = &spec->pins[i];
        str_add(out, i ? ", " : "");
        str_add_json(out, pin->pattern, strlen(pin->pattern));
        str_add(out, ": ");
        str_add_json(out, pin->device, strlen(pin->device));
    }
    str_add_char(out, '}');
}
