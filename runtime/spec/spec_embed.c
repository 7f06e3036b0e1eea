/* spec_embed.c - see spec_embed.h. */

#include "runtime/spec/spec_embed.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/io/base64.h"
#include "runtime/io/file.h"
#include "runtime/io/gzip.h"

#define POINTER "/model/graph/file"

/* The file as it lies from the spec's folder; owned. */
static char *beside(const char *spec, const char *file)
{
    const char *slash = strrchr(spec, '/');
    return *file == '/' || !slash ? alloc_text(file)
                                  : alloc_printf("%.*s/%s", (int)(slash - spec), spec, file);
}

static bool pack(const char *path, struct str *out, struct error *err)
{
    struct str bytes = {0}, packed = {0};
    bool ok = file_read(path, LIMIT_META_GRAPH_BYTES, &bytes, err);
    if (ok) {
        gzip_compress(bytes.data, bytes.size, &packed);
        base64_encode(packed.data, packed.size, out);
    }
    str_release(&bytes);
    str_release(&packed);
    if (ok && out->size > LIMIT_HTTP_BODY_BYTES)
        ok = fail(err, EXHAUSTED,
                  "%s takes %zu bytes of the spec, allowed: %d.  Export the graph without its "
                  "constants and summaries",
                  path, out->size, LIMIT_HTTP_BODY_BYTES);
    return ok;
}

bool spec_embed(json_t *spec, const char *path, bool *changed, struct error *err)
{
    json_t *graph = json_object_get(json_object_get(spec, "model"), "graph");
    json_t *file = json_object_get(graph, "file");
    if (changed)
        *changed = file;
    if (!file)
        return true;
    if (!json_is_string(file) || !*json_string_value(file))
        return error_at(err, POINTER, INVALID,
                        "file is no path, allowed: that of a MetaGraphDef");
    if (json_object_get(graph, "meta_graph"))
        return error_at(err, POINTER, INVALID,
                        "there is a meta_graph as well: give one of both");
    struct str text = {0};
    char *whole = beside(path, json_string_value(file));
    bool ok = pack(whole, &text, err);
    if (ok) {
        json_object_set_new(graph, "meta_graph", json_stringn(text.data, text.size));
        json_object_del(graph, "file");
    } else {
        snprintf(err->pointer, sizeof(err->pointer), POINTER);
    }
    free(whole);
    str_release(&text);
    return ok;
}
