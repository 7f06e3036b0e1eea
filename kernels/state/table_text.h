/* table_text.h - hash tables filled from the lines of a text file. */
#pragma once

#include "kernels/state/table.h"

/*
 * Initialises the table from the file.  The node says what of a line is key and what is value:
 * the whole line (-2), its number (-1), or a column.  Fails with INVALID, naming file and line;
 * OUT_OF_RANGE when there are no lines; as files do.
 */
bool kernel_table_text_read(struct table *table, const char *path, const struct node *node,
                            struct error *err) CHECKED;
