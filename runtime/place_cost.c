/* place_cost.c - see place_cost.h. */

#include "runtime/place_cost.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/cost.h"
#include "runtime/device.h"
#include "runtime/graph.h"
#include "runtime/shapes.h"

#define TASK_US 300.0         /* from one task to another, whatever is sent */
#define TASK_BYTES_PER_US 1e3 /* and how fast */
#define DEVICE_US 10.0        /* between devices of a task */
#define DEVICE_BYTES_PER_US 1e4
#define GPU_TIMES 20.0 /* faster than a core */
#define GPU_US 5.0     /* to start something there */

struct place_simulation {
    const struct graph *graph;
    const struct device *devices;
    int devices_count;
    const struct cost_model *costs;
    struct shapes shapes;
    double *done;    /* by node id */
    int *on;         /* by node id: index of its device, -1: not put */
    double *free_at; /* by device */
};

struct place_simulation *place_cost_new(const struct graph *graph, const int *order,
                                        const struct device *devices, int devices_count,
                                        const struct cost_model *costs)
{
    struct place_simulation *simulation = alloc_bytes(sizeof(*simulation));
    int count = graph_count(graph);
    *simulation = (struct place_simulation){
        .graph = graph,
        .devices = devices,
        .devices_count = devices_count,
        .costs = costs,
        .done = alloc_array((size_t)count, sizeof(double)),
        .on = alloc_array((size_t)count, sizeof(int)),
        .free_at = alloc_array((size_t)devices_count, sizeof(double)),
    };
    shapes_infer(&simulation->shapes, graph, order, count);
    (void)place_cost_end(simulation);
    return simulation;
}

void place_cost_free(struct place_simulation *simulation)
{
    if (!simulation)
        return;
    shapes_release(&simulation->shapes);
    free(simulation->done);
    free(simulation->on);
    free(simulation->free_at);
    free(simulation);
}

/* When a value (output -1: nothing but that the node has run) is on `device`. */
static double arrival(const struct place_simulation *simulation, const struct node *from,
                      int output, const struct device *device)
{
    if (simulation->on[from->id] < 0) /* a generator, or what comes round a loop */
        return 0;
    double done = simulation->done[from->id];
    const struct device *source = &simulation->devices[simulation->on[from->id]];
    if (source == device)
        return done;
    double bytes = output < 0 ? 0 : cost_bytes(from, output, &simulation->shapes);
    return device_same_task(source, device) ? done + DEVICE_US + bytes / DEVICE_BYTES_PER_US
                                            : done + TASK_US + bytes / TASK_BYTES_PER_US;
}

double place_cost_of(const struct cost_model *costs, const struct node *node,
                     const struct shapes *shapes, const struct device *device)
{
    double us = costs ? cost_model_of(costs, node, shapes) : cost_of(node, shapes);
    return device->type == GPU ? GPU_US + us / GPU_TIMES : us;
}

double place_cost_at(const struct place_simulation *simulation, const struct node *node,
                     const struct device *device)
{
    double start = simulation->free_at[device - simulation->devices];
    for (int i = 0; i < node->inputs_count; i++) {
        double at = arrival(simulation, node->inputs[i].from, node->inputs[i].output, device);
        start = at > start ? at : start;
    }
    for (int i = 0; i < node->controls_count; i++) {
        double at = arrival(simulation, node->controls[i], -1, device);
        start = at > start ? at : start;
    }
    return start + place_cost_of(simulation->costs, node, &simulation->shapes, device);
}

void place_cost_put(struct place_simulation *simulation, const struct node *node,
                    const struct device *device)
{
    int index = (int)(device - simulation->devices);
    double done = place_cost_at(simulation, node, device);
    simulation->done[node->id] = simulation->free_at[index] = done;
    simulation->on[node->id] = index;
}

double place_cost_end(struct place_simulation *simulation)
{
    double end = 0;
    for (int i = 0; i < simulation->devices_count; i++) {
        end = simulation->free_at[i] > end ? simulation->free_at[i] : end;
        simulation->free_at[i] = 0;
    }
    for (int i = 0; i < graph_count(simulation->graph); i++)
        simulation->on[i] = -1;
    return end;
}
