/* csv.c - a state machine over the bytes of a file. */

#include "runtime/io/csv.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/stream.h"

#define CSV_WINDOW_BYTES 65536

struct csv {
    struct stream *stream; /* NULL: of bytes in memory */
    char *path;
    char separator;
    struct str bytes; /* of the row's cells, each with a NUL behind it */
    struct csv_cell *cells;
    int count, capacity;
    int64_t line, next_line; /* of the row, and where reading is */
    char *buffer;            /* of a stream, where the window is */
    const char *window;      /* what is being read */
    size_t window_size, window_at;
    int64_t window_offset; /* of its first byte */
    int64_t begin;         /* of the row */
    bool ended;
};

struct csv *csv_open(const char *path, char separator, struct error *err)
{
    struct stream *stream = stream_open(path, STREAM_AUTO, err);
    if (!stream)
        return NULL;
    struct csv *csv = alloc_bytes(sizeof(*csv));
    csv->stream = stream;
    csv->path = alloc_text(path);
    csv->separator = separator;
    csv->next_line = 1;
    csv->window = csv->buffer = alloc_bytes(CSV_WINDOW_BYTES);
    return csv;
}

struct csv *csv_open_bytes(void)
{
    return alloc_bytes(sizeof(struct csv));
}

void csv_set_bytes(struct csv *csv, const char *path, char separator, const void *bytes,
                   size_t size)
{
    assert(!csv->stream);
    if (!csv->path || strcmp(csv->path, path) != 0) {
        free(csv->path);
        csv->path = alloc_text(path);
    }
    csv->separator = separator;
    csv->window = bytes;
    csv->window_size = size;
    csv->window_at = 0;
    csv->next_line = 1;
    csv->ended = true;
}

void csv_close(struct csv *csv)
{
    if (!csv)
        return;
    stream_close(csv->stream);
    str_release(&csv->bytes);
    free(csv->cells);
    free(csv->path);
    free(csv->buffer);
    free(csv);
}

int64_t csv_line(const struct csv *csv)
{
    return csv->line;
}

int64_t csv_begin(const struct csv *csv)
{
    return csv->begin;
}

int64_t csv_end(const struct csv *csv)
{
    return csv->window_offset + (int64_t)csv->window_at;
}

/* --- bytes --- */

#define CSV_END (-1)
#define CSV_FAILED (-2)

static int refill(struct csv *csv, struct error *err)
{
    if (csv->ended)
        return CSV_END;
    csv->window_offset = stream_offset(csv->stream);
    csv->window_at = 0;
    if (!stream_read(csv->stream, csv->buffer, CSV_WINDOW_BYTES, &csv->window_size, err)) {
        csv->window_size = 0;
        csv->ended = true; /* nothing more can be read behind it */
        error_prefix(err, "%s: ", csv->path);
        return CSV_FAILED;
    }
    csv->ended = csv->window_size < CSV_WINDOW_BYTES;
    if (csv->ended && !stream_is_whole(csv->stream)) {
        fail(err, DATA_LOSS, "%s: the compressed file ends before its checksum", csv->path);
        return CSV_FAILED;
    }
    if (!csv->window_offset && csv->window_size >= 3 && !memcmp(csv->window, "\xef\xbb\xbf", 3))
        csv->window_at = 3;
    return csv->window_at < csv->window_size ? 0 : CSV_END;
}

/* The next byte without taking it; CSV_END, CSV_FAILED. */
static int peek(struct csv *csv, struct error *err)
{
    if (csv->window_at == csv->window_size) {
        int result = refill(csv, err);
        if (result)
            return result;
    }
    return (unsigned char)csv->window[csv->window_at];
}

static int take(struct csv *csv, struct error *err)
{
    int c = peek(csv, err);
    if (c >= 0)
        csv->window_at++;
    csv->next_line += c == '\n';
    return c;
}

/* --- cells --- */

/* Ends the cell that began at `start`; its text is found later, as bytes move. */
static bool end_cell(struct csv *csv, size_t start, bool quoted, struct error *err)
{
    if (csv->count == CSV_CELLS_MAX)
        return fail(err, DATA_LOSS, "%s: line %lld has more than %d cells", csv->path,
                    (long long)csv->line, CSV_CELLS_MAX);
    csv->cells = alloc_grow(csv->cells, csv->count, &csv->capacity, sizeof(*csv->cells));
    csv->cells[csv->count++] = (struct csv_cell){NULL, csv->bytes.size - start, quoted};
    str_add_char(&csv->bytes, 0);
    return true;
}

static bool check_size(struct csv *csv, struct error *err)
{
    return csv->bytes.size <= CSV_ROW_BYTES_MAX ||
           fail(err, DATA_LOSS, "%s: the row at line %lld has more than %d bytes", csv->path,
                (long long)csv->line, CSV_ROW_BYTES_MAX);
}

/* The inside of quotes, the first of which is taken. */
static bool read_quoted(struct csv *csv, struct error *err)
{
    while (true) {
        int c = take(csv, err);
        if (c == CSV_FAILED)
            return false;
        if (c == CSV_END)
            return fail(err, DATA_LOSS, "%s: line %lld: the quote that it begins has no end",
                        csv->path, (long long)csv->line);
        if (c == '"') {
            int next = peek(csv, err);
            if (next == CSV_FAILED)
                return false;
            if (next != '"')
                break;
            csv->window_at++;
        }
        str_add_char(&csv->bytes, (char)c);
        if (!check_size(csv, err))
            return false;
    }
    int next = peek(csv, err);
    return next == csv->separator || next == '\n' || next == '\r' || next == CSV_END ||
           (next != CSV_FAILED &&
            fail(err, DATA_LOSS, "%s: line %lld, cell %d: there is more behind its quotes",
                 csv->path, (long long)csv->next_line, csv->count + 1));
}

/* Takes an unquoted cell as far as the window reaches; whether it ended there. */
static bool read_plain(struct csv *csv)
{
    size_t at = csv->window_at;
    while (at < csv->window_size && csv->window[at] != csv->separator &&
           csv->window[at] != '\n' && csv->window[at] != '\r')
        at++;
    str_add_bytes(&csv->bytes, csv->window + csv->window_at, at - csv->window_at);
    csv->window_at = at;
    return at < csv->window_size;
}

/* One cell and what ends it: `*last` at the end of the row. */
static bool read_cell(struct csv *csv, bool *last, struct error *err)
{
    size_t start = csv->bytes.size;
    int c = peek(csv, err);
    bool quoted = c == '"';
    if (c == CSV_FAILED)
        return false;
    if (quoted) {
        take(csv, err);
        if (!read_quoted(csv, err))
            return false;
    }
    while (true) {
        c = peek(csv, err);
        if (c == CSV_FAILED || !check_size(csv, err))
            return false;
        if (c == CSV_END || c == csv->separator || c == '\n')
            break;
        if (c == '\r') { /* of CRLF, or alone */
            take(csv, err);
            c = peek(csv, err);
            if (c == '\n' || c == CSV_END)
                break;
            if (c == CSV_FAILED)
                return false;
            str_add_char(&csv->bytes, '\r');
            continue;
        }
        read_plain(csv);
    }
    *last = c != csv->separator;
    take(csv, err);
    return end_cell(csv, start, quoted, err);
}

static void pass_line(struct csv *csv)
{
    struct error ignored; /* the first one stands */
    int c;
    do
        c = take(csv, &ignored);
    while (c != '\n' && c >= 0);
}

bool csv_next(struct csv *csv, const struct csv_cell **cells, int *count, struct error *err)
{
    bool last, empty;
    do {
        int c = peek(csv, err);
        csv->line = csv->next_line;
        csv->begin = csv_end(csv);
        csv->count = 0;
        csv->bytes.size = 0;
        *count = 0;
        if (c == CSV_FAILED)
            return false;
        if (c == CSV_END)
            return true;
        do {
            if (!read_cell(csv, &last, err)) {
                pass_line(csv);
                return false;
            }
        } while (!last);
        empty = csv->count == 1 && !csv->cells[0].size && !csv->cells[0].quoted;
    } while (empty);
    size_t at = 0;
    for (int i = 0; i < csv->count; i++) {
        csv->cells[i].text = csv->bytes.data + at;
        at += csv->cells[i].size + 1;
    }
    *cells = csv->cells;
    *count = csv->count;
    return true;
}
