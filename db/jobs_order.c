/* jobs_order.c - a key of the table for each order, so that a page costs what it shows. */

#include "db/jobs_order.h"
#include "db/internal.h"

static const char *const queries[][2] = {
    [DB_JOBS_BY_CREATED] = {"SELECT number, NULL FROM jobs WHERE ?1 IS NULL AND number > ?2"
                            " ORDER BY number LIMIT ?3",
                            "SELECT number, NULL FROM jobs WHERE ?1 IS NULL AND number < ?2"
                            " ORDER BY number DESC LIMIT ?3"},
    [DB_JOBS_BY_NAME] = {"SELECT number, name FROM jobs WHERE (name, number) > (?1, ?2)"
                         " ORDER BY name, number LIMIT ?3",
                         "SELECT number, name FROM jobs WHERE (name, number) < (?1, ?2)"
                         " ORDER BY name DESC, number DESC LIMIT ?3"},
    [DB_JOBS_BY_PRIORITY] = {"SELECT number, priority FROM jobs WHERE (priority, number) >"
                             " (?1, ?2) ORDER BY priority, number LIMIT ?3",
                             "SELECT number, priority FROM jobs WHERE (priority, number) <"
                             " (?1, ?2) ORDER BY priority DESC, number DESC LIMIT ?3"},
};

bool db_jobs_ordered(struct db_conn *conn, enum db_jobs_order order, bool descending,
                     struct db_ranked after, int limit, struct arena *arena,
                     struct db_ranked **ranked, int *ranked_count, struct error *err)
{
    if (!after.job && descending)
        after = (struct db_ranked){.job = INT64_MAX, .text = "\xff"}; /* above all UTF-8 */
    else if (!after.job)
        after.text = "";
    if (order == DB_JOBS_BY_CREATED)
        after.text = NULL;
    const char *query = queries[order][descending];
    sqlite3_stmt *stmt =
        order == DB_JOBS_BY_PRIORITY
            ? db_query(conn, err, query, "dii", after.value, after.job, (int64_t)limit)
            : db_query(conn, err, query, "tii", after.text, after.job, (int64_t)limit);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_ranked)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0) {
        struct db_ranked *one = db_rows_add(&rows);
        *one = (struct db_ranked){.job = sqlite3_column_int64(stmt, 0)};
        if (order == DB_JOBS_BY_NAME)
            one->text = db_column_text(stmt, 1, arena);
        else
            one->value = sqlite3_column_double(stmt, 1); /* 0 by number */
    }
    *ranked = db_rows_end(&rows, arena, ranked_count);
    return row == 0;
}
