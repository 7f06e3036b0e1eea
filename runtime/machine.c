/* machine.c - what the kernel says of memory and processors, and what these can. */

#include "runtime/machine.h"

#include <sched.h>
#include <unistd.h>

#include "base/error.h"
#include "base/str.h"
#include "runtime/io/file.h"

/* The limit of the group of processes that this one is in; 0: none. */
static int64_t group_limit(void)
{
    struct str text = {0};
    struct error ignored; /* there need not be one */
    int64_t limit = 0;
    if (file_read("/sys/fs/cgroup/memory.max", 64, &text, &ignored))
        limit = strtoll(str_text(&text), NULL, 10); /* "max" is 0 */
    str_release(&text);
    return limit;
}

int64_t machine_memory(void)
{
    int64_t group = group_limit();
    int64_t machine = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    return group > 0 && group < machine ? group : machine;
}

int machine_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

bool machine_multiplies_bf16(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}
