/* place_explain.c - why each node is where it is, as JSON for people. */

#include "base/error.h"
#include "base/str.h"
#include "runtime/internal.h"
#include "runtime/op.h"

static void add_text(struct str *json, const char *text)
{
    str_add_json(json, text, strlen(text));
}

static void add_reason(const struct decision *decision, struct str *json)
{
    const struct node *node = decision->node;
    struct str text = {0};
    switch (decision->reason) {
    case PLACE_ONLY:
        str_printf(&text, "the only device of this task; it has a kernel for %s",
                   node->op->name);
        break;
    case PLACE_REQUESTED:
        str_printf(&text, "requested: %s", node->requested_device);
        break;
    case PLACE_WITH:
        str_printf(&text, "must be with '%s': they share a variable or ask for it",
                   decision->leader->name);
        break;
    case PLACE_KERNEL:
        str_printf(&text, "the only device with a kernel for %s", node->op->name);
        break;
    case PLACE_FIRST:
        str_add(&text, "the first of several, by type, its client's task, and name");
        break;
    case PLACE_KEPT:
        str_add(&text, "where the session's graph had it before");
        break;
    case PLACE_COST:
        str_add(&text, "there it is done soonest, by what it and its inputs cost");
        break;
    case PLACE_NEAR:
        str_add(&text, "where its value is read, or what it reads is made");
        break;
    }
    add_text(json, str_text(&text));
    str_release(&text);
}

/* Why a device was not taken, NULL for the one that was. */
static const char *rejection(const struct decision *decision, const struct device *device)
{
    const struct node *node = decision->node;
    struct device_name wish;
    struct error err;
    if (device == node->device)
        return NULL;
    if (!place_needs_no_kernel(node) && !kernel_exists(node, device->type))
        return "no kernel for this op and its types";
    if (node->requested_device[0] && device_name_parse(node->requested_device, &wish, &err) &&
        !device_name_matches(&wish, &device->parts))
        return "not what was requested";
    switch (decision->reason) {
    case PLACE_WITH:
        return "what it must be with is elsewhere";
    case PLACE_NEAR:
        return "its value is neither read nor made there";
    case PLACE_KEPT:
        return "it was elsewhere before";
    default:
        return decision->done_us ? "it would be done later" : "another device comes first";
    }
}

void place_explain(const struct placement *placement, const struct node *node, struct str *json)
{
    assert(node->id < placement->count);
    str_add(json, "{\"node\":");
    add_text(json, node->name);
    str_add(json, ",\"op\":");
    add_text(json, node->op->name);
    const struct attr *parts = node_attr(node, OPTIMISE_STANDS_FOR);
    for (int i = 0; parts && i < parts->count; i++) {
        str_add(json, i ? "," : ",\"stands_for\":[");
        str_add_json(json, parts->strings[i].data, parts->strings[i].size);
        str_add(json, i + 1 == parts->count ? "]" : "");
    }
    str_add(json, ",\"device\":");
    add_text(json, node->device->name);
    str_add(json, ",\"requested\":");
    add_text(json, node->requested_device);
    str_add(json, ",\"reason\":");
    add_reason(&placement->decisions[node->id], json);
    str_add(json, ",\"candidates\":[");
    for (int i = 0; i < placement->devices_count; i++) {
        const struct device *device = &placement->devices[i];
        const struct decision *decision = &placement->decisions[node->id];
        const char *rejected = rejection(decision, device);
        str_add(json, i ? ",{\"device\":" : "{\"device\":");
        add_text(json, device->name);
        str_add(json, ",\"rejected\":");
        if (rejected)
            add_text(json, rejected);
        else
            str_add(json, "null");
        if (decision->done_us && decision->done_us[i] >= 0)
            str_printf(json, ",\"done_us\":%.1f", (double)decision->done_us[i]);
        str_add(json, "}");
    }
    str_add(json, "]}");
}
