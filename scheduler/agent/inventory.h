/* inventory.h - what this process may use of the machine: CPUs, memory; and which boot it is.
 */
#pragma once

#include "base/base.h"

/* CPUs this process may run on, or the cgroup's share of them if that is less; 1000 = one. */
int64_t inventory_cpu_millis(void);

/* Memory of the machine, or the cgroup's limit if that is less. */
int64_t inventory_memory_bytes(void);

/* The machine's boot id, "" when unknown. */
const char *inventory_boot_id(char *out, size_t out_size);

/* This machine's address on the way to `server` ("HOST:PORT"); else 127.0.0.1. */
const char *inventory_host(const char *server, char *out, size_t out_size);
