/* room.c - asks the system for memory, and gives it back. */

#include <stdatomic.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "server/room.h"

#define ROOM_BYTES ((size_t)32 << 20)
#define LOOK_US UINT64_C(5000)

bool room_check(struct error *err)
{
    static atomic_uint_fast64_t looked_us;
    static atomic_bool room = true;
    uint64_t now_us = clock_monotonic_us(), then_us = atomic_load(&looked_us);
    if (now_us - then_us >= LOOK_US &&
        atomic_compare_exchange_strong(&looked_us, &then_us, now_us)) {
        /* Never touched: it costs no memory, but counts against every limit that there is. */
        void *probe =
            mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        atomic_store(&room, probe != MAP_FAILED);
        if (probe != MAP_FAILED)
            munmap(probe, ROOM_BYTES);
    }
    return atomic_load(&room) ||
           fail(err, UNAVAILABLE, "the server has no memory for more requests at this moment");
}
