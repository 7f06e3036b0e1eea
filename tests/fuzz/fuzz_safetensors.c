/* fuzz_safetensors.c - safetensors files; the header of one that is read is written again. */

#include "runtime/io/safetensors.h"
#include "tests/fuzz/fuzz.h"

static void read_all(struct safetensors *file, const struct safetensors_item *items, int count,
                     size_t size)
{
    struct error err;
    int64_t total = 0;
    for (int i = 0; i < count; i++) {
        FUZZ_CHECK(items[i].offset == total);
        total += items[i].bytes;
        FUZZ_CHECK((size_t)total <= size);
        char *bytes = malloc((size_t)items[i].bytes + 1);
        FUZZ_CHECK(bytes);
        FUZZ_CHECK(safetensors_read(file, &items[i], 0, bytes, (size_t)items[i].bytes, &err) ||
                   items[i].dtype == BOOL);
        free(bytes);
    }
}

static void write_again(const struct safetensors_item *items, int count,
                        const struct safetensors_note *notes, int notes_count)
{
    struct error err;
    struct str header = {0};
    struct safetensors_item *copy = malloc(((size_t)count + 1) * sizeof(*copy));
    FUZZ_CHECK(copy);
    if (count)
        memcpy(copy, items, (size_t)count * sizeof(*copy));
    if (safetensors_layout(copy, count, &err)) {
        safetensors_add_header(&header, copy, count, notes, notes_count);
        FUZZ_CHECK(header.size % 8 == 0);
    }
    str_release(&header);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct error err;
    fuzz_file(fuzz_path(path, "safetensors"), data, size);
    struct safetensors *file = safetensors_open(path, &err);
    if (file) {
        int count, notes_count;
        const struct safetensors_item *items = safetensors_items(file, &count);
        const struct safetensors_note *notes = safetensors_notes(file, &notes_count);
        read_all(file, items, count, size);
        write_again(items, count, notes, notes_count);
        safetensors_close(file);
    } else {
        FUZZ_CHECK(err.code == DATA_LOSS || err.code == UNIMPLEMENTED);
        FUZZ_CHECK(strstr(err.text, path));
    }
    unlink(path);
    return 0;
}
