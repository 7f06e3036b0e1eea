/* resource.c - counting who holds a resource. */

#include "runtime/resource.h"

void resource_ref(struct resource *resource)
{
    __atomic_add_fetch(&resource->references, 1, __ATOMIC_RELAXED);
}

void resource_unref(struct resource *resource)
{
    if (resource && __atomic_sub_fetch(&resource->references, 1, __ATOMIC_ACQ_REL) == 0)
        resource->destroy(resource);
}
