/* fuzz_csv.c - tables as text: rows and cells stay within the file, whatever it holds. */

#include "runtime/io/csv.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct error err;
    const struct csv_cell *cells;
    size_t bytes = 0, failed = 0;
    int64_t line = 0;
    int count;
    fuzz_file(fuzz_path(path, "csv"), data, size);
    struct csv *csv = csv_open(path, ',', &err);
    FUZZ_CHECK(csv);
    while (true) {
        if (!csv_next(csv, &cells, &count, &err)) {
            FUZZ_CHECK(err.code == DATA_LOSS && strstr(err.text, path));
            if (++failed > size)
                break; /* what is compressed and damaged stays so */
            continue;
        }
        if (!count)
            break;
        FUZZ_CHECK(csv_line(csv) > line);
        line = csv_line(csv);
        for (int i = 0; i < count; i++) {
            FUZZ_CHECK(!cells[i].text[cells[i].size]);
            bytes += cells[i].size + 1;
        }
    }
    FUZZ_CHECK(bytes <= 1100 * (size + 1)); /* gzip makes little of much */
    csv_close(csv);
    unlink(path);
    return 0;
}
