/* table.c - aligned columns. */

#include <stdarg.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/table.h"

struct table {
    int columns;
    char **cells; /* row by row; the first row is the head */
    int count;
    int capacity;
};

struct table *table_new(const char *const *head, int columns)
{
    assert(columns > 0 && columns <= TABLE_COLUMNS_MAX);
    struct table *table = alloc_bytes(sizeof(*table));
    table->columns = columns;
    for (int i = 0; i < columns; i++)
        table_cell(table, "%s", head[i]);
    return table;
}

void table_cell(struct table *table, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    table->cells = alloc_grow(table->cells, table->count, &table->capacity, sizeof(char *));
    table->cells[table->count++] = alloc_text(text);
}

/* Columns that a UTF-8 text takes, near enough: its bytes without continuations. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void table_print(struct table *table)
{
    int widths[TABLE_COLUMNS_MAX] = {0};
    bool right[TABLE_COLUMNS_MAX];
    for (int i = 0; i < table->columns; i++) {
        right[i] = table->cells[i][0] == '>';
        if (right[i])
            memmove(table->cells[i], table->cells[i] + 1, strlen(table->cells[i]));
    }
    for (int i = 0; i < table->count; i++) {
        int width = width_of(table->cells[i]);
        if (width > widths[i % table->columns])
            widths[i % table->columns] = width;
    }
    for (int i = 0; i < table->count; i++) {
        int column = i % table->columns;
        bool last = column == table->columns - 1;
        int pad = widths[column] - width_of(table->cells[i]);
        printf("%*s%s%*s%s", right[column] ? pad : 0, "", table->cells[i],
               right[column] || last ? 0 : pad, "", last ? "\n" : "  ");
        free(table->cells[i]);
    }
    free(table->cells);
    free(table);
}

const char *table_duration(double seconds, char *out, size_t size)
{
    long long s = (long long)seconds;
    if (seconds < 0)
        snprintf(out, size, "-");
    else if (s < 60)
        snprintf(out, size, "%llds", s);
    else if (s < 3600)
        snprintf(out, size, "%lldm %llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, size, "%lldh %lldm", s / 3600, s / 60 % 60);
    else
        snprintf(out, size, "%lldd %lldh", s / 86400, s / 3600 % 24);
    return out;
}

double table_age(const char *time)
{
    struct tm parts = {0};
    if (!time || !strptime(time, "%Y-%m-%dT%H:%M:%S", &parts))
        return -1;
    return (double)clock_wall_us() / 1e6 - (double)timegm(&parts);
}
