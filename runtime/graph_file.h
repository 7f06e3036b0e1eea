/*
 * graph_file.h - a graph from a file of any of TensorFlow's forms: a GraphDef, a MetaGraphDef
 * (model.meta) or a SavedModel (the file or its folder), binary or as text (.pbtxt).  The
 * contents decide which it is, not the name.
 */
#pragma once

#include "base/base.h"

struct error;
struct graph;
struct str;

/*
 * Reads the file into the empty graph.  `tags` ("serve,gpu") chooses the meta graph of a
 * SavedModel; NULL: there is one.  Appends what was read, in words, to `what`.  Fails with
 * INVALID when the file holds no graph, saying what it seems to be instead, with NOT_FOUND when
 * no meta graph has these tags, and as graph_import() does.
 */
bool graph_file_read(const char *path, const char *tags, struct graph *graph, struct str *what,
                     struct error *err) CHECKED;
