/*
 * handle.h - nodes that make a resource when they first run, and hand out its handle: queues,
 * barriers, accumulators, tables, readers, stages.
 *
 * With a shared_name all nodes of the task with that name share the resource.  Without, it
 * belongs to the node in its session and ends with it; it is in the table of resources under a
 * name that nobody else has, so that handles that are names (Ref(string)) find it too.
 *
 * Such a kernel is made of HANDLE_KERNEL(), a class and the resource itself.
 */
#pragma once

#include "kernels/list.h"

#include "base/error.h"
#include "runtime/resource.h"

struct handle_class {
    const char *kind;  /* of the resource */
    bool by_node_name; /* without a shared_name: the node's, if attribute
                          use_node_name_sharing says so */
    /* Reads the node's attributes into what make and matches get. */
    bool (*read)(const struct node *node, void **spec, struct error *err);
    void (*free)(void *spec);
    /* `call` is the first run's, for what comes as an input. */
    struct resource *(*make)(const void *spec, const char *name, struct kernel_call *call,
                             struct error *err);
    /* Whether the node may share a resource that another one made. */
    bool (*matches)(const struct resource *resource, const void *spec, const struct node *node,
                    struct error *err);
};

bool kernel_handle_prepare(const struct handle_class *class, const struct node *node,
                           void **state, struct error *err) CHECKED;
void kernel_handle_release(void *state);
bool kernel_handle_run(struct kernel_call *call, struct error *err);

/*
 * The resource of that kind behind the handle in input `index`, in either form.  Counted:
 * resource_unref() it.  Fails with INVALID, NOT_FOUND.
 */
struct resource *kernel_handle_get(struct kernel_call *call, int index, const char *kind,
                                   struct error *err) CHECKED;

/* A kernel for op `op_` whose resource is of `class_`. */
#define HANDLE_KERNEL(name_, op_, class_)                                                      \
    static bool name_##_prepare(const struct node *node, void **state, struct error *err)      \
    {                                                                                          \
        return kernel_handle_prepare(&class_, node, state, err);                               \
    }                                                                                          \
    const struct kernel kernel_##name_ = {                                                     \
        .op = op_,                                                                             \
        .device = CPU,                                                                         \
        .prepare = name_##_prepare,                                                            \
        .release = kernel_handle_release,                                                      \
        .run = kernel_handle_run,                                                              \
    }
