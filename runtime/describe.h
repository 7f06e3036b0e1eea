/*
 * describe.h - what becomes of a graph on its way to a run: pass by pass, and its memory.
 */
#pragma once

#include "base/base.h"
#include "runtime/session.h"

struct graph;
struct str;

struct describe_options {
    const char *const *feeds; /* none: all placeholders */
    int feeds_count;
    const char *const *fetches; /* none: all nodes whose outputs nobody reads */
    int fetches_count;
    int64_t batch;       /* in place of a first dimension that a feed leaves open; 0: none */
    uint32_t passes_off; /* as in session_options */
    int threads;
};

/*
 * Appends a JSON object:
 *
 *   {"nodes": N, "passes": [{"pass", "summary", "off", "nodes", "removed": [{"name", "op"}],
 *    "added": [{"name", "op", "stands_for": []}]}],
 *    "kept": [{"name", "op", "inputs": [], "stands_for": []}],
 *    "memory": {"peak_bytes", "at", "constant_bytes", "variable_bytes", "feed_bytes",
 *    "unknown", "tensors": [{"name", "op", "dtype", "shape", "bytes"}]}}
 *
 * "nodes" counts what a run needs; "prune" comes first and cannot be off.  Fails as
 * session_prepare() does.
 */
bool describe_graph(const struct graph *graph, const struct describe_options *options,
                    struct str *json, struct error *err) CHECKED;
