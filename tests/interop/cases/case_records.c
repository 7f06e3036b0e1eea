/* case_records.c - a file of recorded cases. */

#include "tests/interop/cases/cases.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "proto/record.h"

bool case_records_read(const char *path, struct case_records *records, struct error *err)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return error_errno(err, NOT_FOUND, "%s", path);
    struct str bytes = {0};
    char block[65536];
    for (size_t n; (n = fread(block, 1, sizeof(block), file)) > 0;)
        str_add_bytes(&bytes, block, n);
    fclose(file);
    *records = (struct case_records){.size = bytes.size};
    records->bytes = str_take(&bytes);
    int capacity = 0;
    for (size_t at = 0; at < records->size;) {
        const void *data;
        size_t size, used = 0;
        enum record_result result = record_parse(records->bytes + at, records->size - at,
                                                 (int64_t)at, &data, &size, &used, err);
        if (result != RECORD_OK)
            return result == RECORD_BAD ||
                   fail(err, DATA_LOSS, "%s: a record is cut off", path);
        records->offsets =
            alloc_grow(records->offsets, records->count, &capacity, sizeof(size_t));
        records->offsets[records->count++] = at;
        at += used;
    }
    return true;
}

Case *case_records_unpack(const struct case_records *records, int index)
{
    const void *data;
    size_t size, used, at = records->offsets[index];
    struct error err;
    if (record_parse(records->bytes + at, records->size - at, (int64_t)at, &data, &size, &used,
                     &err) != RECORD_OK)
        return NULL;
    return trainyard__cases__case__unpack(NULL, size, data);
}

void case_records_write_graphs(const char *path, const char *folder)
{
    struct case_records records = {0};
    struct error err = {0};
    if (!case_records_read(path, &records, &err)) {
        printf("%s: %s\n", path, err.text);
        return;
    }
    const char *slash = strrchr(path, '/');
    for (int i = 0; i < records.count; i++) {
        Case *c = case_records_unpack(&records, i);
        struct str name = {0};
        str_printf(&name, "%s/%s-%d", folder, slash ? slash + 1 : path, i);
        FILE *file = c && c->graph.len ? fopen(str_text(&name), "wb") : NULL;
        if (file) {
            fwrite(c->graph.data, 1, c->graph.len, file);
            fclose(file);
        }
        str_release(&name);
        if (c)
            trainyard__cases__case__free_unpacked(c, NULL);
    }
    case_records_release(&records);
}

void case_records_release(struct case_records *records)
{
    free(records->bytes);
    free(records->offsets);
}
