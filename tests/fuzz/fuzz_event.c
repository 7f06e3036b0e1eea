/* fuzz_event.c - the data of one record of an event file. */

#include <math.h>

#include "proto/tfevent.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err;
    struct tfevent event;
    struct arena *arena = arena_new();
    if (tfevent_parse(data, size, arena, &event, &err)) {
        FUZZ_CHECK(!isnan(event.wall_time));
        FUZZ_CHECK(event.text);
        FUZZ_CHECK(str_is_utf8(event.text, strlen(event.text)));
        size_t sum = 0;
        for (int i = 0; i < event.values_count; i++) {
            const struct tfevent_value *value = &event.values[i];
            FUZZ_CHECK(value->tag && value->plugin);
            FUZZ_CHECK(str_is_utf8(value->tag, strlen(value->tag)));
            for (size_t b = 0; b < value->size; b++)
                sum += ((const uint8_t *)value->bytes)[b];
        }
        FUZZ_CHECK(sum <= 255 * size);
    }
    arena_free(arena);
    return 0;
}
