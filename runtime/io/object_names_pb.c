/* object_names_pb.c - see object_names.h. */

#include "tensorflow/saved_object_graph.pb-c.h"

#include "base/arena.h"
#include "base/error.h"
#include "proto/message.h"
#include "runtime/io/object_names.h"

typedef Tensorflow__TrackableObjectGraph graph_proto;
typedef Tensorflow__TrackableObjectGraph__TrackableObject object_proto;

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct object_name *)a)->key, ((const struct object_name *)b)->key);
}

bool object_names_read(const void *bytes, size_t size, struct arena *arena,
                       const struct object_name **out, int *count, struct error *err)
{
    const graph_proto *graph = message_unpack(&tensorflow__trackable_object_graph__descriptor,
                                              bytes, size, arena, err);
    if (!graph) {
        err->code = DATA_LOSS;
        return error_prefix(err, "the graph of objects: ");
    }
    size_t total = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        total += graph->nodes[i]->n_attributes;
    struct object_name *names = arena_array(arena, total + 1, sizeof(*names));
    *count = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const object_proto *object = graph->nodes[i];
        for (size_t k = 0; k < object->n_attributes; k++) {
            if (*object->attributes[k]->full_name)
                names[(*count)++] = (struct object_name){object->attributes[k]->checkpoint_key,
                                                         object->attributes[k]->full_name};
        }
    }
    if (*count)
        qsort(names, (size_t)*count, sizeof(*names), compare);
    *out = names;
    return true;
}

const char *object_names_find(const struct object_name *names, int count, const char *key)
{
    const struct object_name wanted = {.key = key};
    const struct object_name *found =
        count ? bsearch(&wanted, names, (size_t)count, sizeof(*names), compare) : NULL;
    return found ? found->name : NULL;
}
