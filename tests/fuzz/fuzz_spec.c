/* fuzz_spec.c - job specs: what parses is written out and read back the same. */

#include "runtime/spec/spec.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    struct arena *arena = arena_new();
    const struct spec *spec = spec_parse(arena, (const char *)data, size, &err);
    if (spec) {
        struct str once = {0}, twice = {0};
        spec_to_json(spec, &once);
        const struct spec *again = spec_parse(arena, once.data, once.size, &err);
        FUZZ_CHECK(again);
        spec_to_json(again, &twice);
        FUZZ_CHECK(once.size == twice.size && !memcmp(once.data, twice.data, once.size));
        str_release(&once);
        str_release(&twice);
    } else {
        FUZZ_CHECK(err.code && err.text[0]);
    }
    arena_free(arena);
    return 0;
}
