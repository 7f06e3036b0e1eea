/* graph_file_pb.c - tells the forms of a graph's file apart, and takes the graph out. */

#include <ctype.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "proto/text.h"
#include "runtime/graph.h"
#include "runtime/graph_file.h"
#include "runtime/io/file.h"
#include "tensorflow/meta_graph.pb-c.h"

#define FILE_BYTES_MAX (INT64_C(1) << 31)

enum form { NO_GRAPH, GRAPH, META_GRAPH, SAVED_MODEL };

static const ProtobufCMessageDescriptor *const descriptors[] = {
    [GRAPH] = &tensorflow__graph_def__descriptor,
    [META_GRAPH] = &tensorflow__meta_graph_def__descriptor,
    [SAVED_MODEL] = &tensorflow__saved_model__descriptor,
};
static const char *const form_names[] = {"", "GraphDef", "MetaGraphDef", "SavedModel"};

/* --- which form --- */

static bool is_text(const struct str *bytes)
{
    const char *text = str_text(bytes);
    size_t looked = bytes->size < 4096 ? bytes->size : 4096;
    for (size_t i = 0; i < looked; i++)
        if (!isspace((unsigned char)text[i]) && (unsigned char)text[i] < 0x20)
            return false;
    return bytes->size > 0;
}

/* The first field that only one of them has, or that all have in their first place. */
static enum form form_of_text(const struct str *bytes)
{
    const char *at = str_text(bytes);
    while (*at) {
        at += strspn(at, " \t\r\n");
        if (*at != '#')
            break;
        at += strcspn(at, "\n");
    }
    size_t size = strcspn(at, " \t\r\n:{<");
    for (int form = SAVED_MODEL; form > NO_GRAPH; form--)
        for (unsigned i = 0; i < descriptors[form]->n_fields; i++) {
            const char *name = descriptors[form]->fields[i].name;
            if (strlen(name) == size && !memcmp(name, at, size))
                return (enum form)form;
        }
    return NO_GRAPH;
}

struct field {
    int number, wire;
    const uint8_t *data; /* of wire type 2 */
    uint64_t size;       /* of that; else the number */
};

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* The next field of a message, if it is a number or has bytes. */
static bool next_field(const uint8_t **at, const uint8_t *end, struct field *field)
{
    uint64_t tag;
    if (!read_varint(at, end, &tag) || !read_varint(at, end, &field->size))
        return false;
    field->number = (int)(tag >> 3);
    field->wire = tag & 7;
    field->data = *at;
    if (field->wire == 0)
        return true;
    if (field->wire != 2 || field->size > (uint64_t)(end - *at))
        return false;
    *at += field->size;
    return true;
}

/* Whether the bytes begin as a NodeDef does: a name, then an op that may be one. */
static bool is_node(const uint8_t *at, const uint8_t *end)
{
    struct field field;
    while (next_field(&at, end, &field) && field.wire == 2) {
        if (field.number != 2)
            continue;
        for (uint64_t i = 0; i < field.size; i++)
            if (!isalnum(field.data[i]) && !strchr("_>.", field.data[i]))
                return false;
        return field.size > 0;
    }
    return false;
}

static enum form form_of_wire(const struct str *bytes)
{
    const uint8_t *at = (const uint8_t *)str_text(bytes), *end = at + bytes->size;
    struct field first, inner;
    if (!next_field(&at, end, &first))
        return NO_GRAPH;
    if (first.number == 1 && first.wire == 0)
        return first.size == 1 && at < end && *at == 0x12 ? SAVED_MODEL : NO_GRAPH;
    if (first.wire != 2)
        return NO_GRAPH;
    const uint8_t *data = first.data, *data_end = data + first.size;
    if (first.number == 1)
        return is_node(data, data_end) ? GRAPH : META_GRAPH;
    if (first.number == 2 && next_field(&data, data_end, &inner) && inner.wire == 2 &&
        inner.number == 1 && is_node(inner.data, inner.data + inner.size))
        return META_GRAPH;
    return first.number == 2 || first.number == 4 ? GRAPH : NO_GRAPH;
}

/* What people give by mistake. */
static const char *other_form(const struct str *bytes)
{
    static const struct {
        size_t at;
        const char *mark, *name;
    } known[] = {
        {0, "\x89HDF", "an HDF5 file, as Keras writes weights"},
        {0, "PK\3\4", "a zip archive, as Keras's .keras files are"},
        {0, "\x1f\x8b", "compressed with gzip"},
        {4, "TFL3", "a TensorFlow Lite model"},
        {0, "{", "JSON"},
        {0, "\x80", "a pickle of Python"},
    };
    for (int i = 0; i < ARRAY_LEN(known); i++) {
        size_t size = strlen(known[i].mark);
        if (bytes->size >= known[i].at + size &&
            !memcmp(str_text(bytes) + known[i].at, known[i].mark, size))
            return known[i].name;
    }
    return bytes->size ? "none of them" : "empty";
}

/* --- taking the graph out --- */

static bool import(struct graph *graph, const Tensorflow__GraphDef *def, struct error *err)
{
    struct str bytes = {0};
    message_pack(&def->base, &bytes);
    bool ok = graph_import(graph, str_text(&bytes), bytes.size, err);
    str_release(&bytes);
    return ok;
}

static void tell_tags(const Tensorflow__MetaGraphDef *meta, struct str *out)
{
    for (size_t i = 0; meta->meta_info_def && i < meta->meta_info_def->n_tags; i++)
        str_printf(out, "%s%s", i ? "," : "", meta->meta_info_def->tags[i]);
}

static bool import_meta(struct graph *graph, const Tensorflow__MetaGraphDef *meta,
                        struct str *what, struct error *err)
{
    if (!meta->graph_def)
        return fail(err, INVALID, "it has no graph");
    if (meta->meta_info_def && *meta->meta_info_def->tensorflow_version)
        str_printf(what, ", of TensorFlow %s", meta->meta_info_def->tensorflow_version);
    return import(graph, meta->graph_def, err);
}

static bool import_saved(struct graph *graph, const Tensorflow__SavedModel *model,
                         const char *tags, struct str *what, struct error *err)
{
    struct str all = {0};
    const Tensorflow__MetaGraphDef *chosen = NULL;
    for (size_t i = 0; i < model->n_meta_graphs; i++) {
        struct str own = {0};
        tell_tags(model->meta_graphs[i], &own);
        if (tags ? !strcmp(tags, str_text(&own)) : model->n_meta_graphs == 1)
            chosen = model->meta_graphs[i];
        str_printf(&all, "%s\"%s\"", i ? ", " : "", str_text(&own));
        str_release(&own);
    }
    bool ok;
    if (!chosen && tags)
        ok = fail(err, NOT_FOUND, "no meta graph has the tags \"%s\", there are: %s", tags,
                  str_text(&all));
    else if (!chosen)
        ok = fail(err, INVALID, "it has %zu meta graphs: choose one by its tags (--tags), %s",
                  model->n_meta_graphs, str_text(&all));
    else
        ok = import_meta(graph, chosen, what, err);
    if (chosen && ok) {
        str_add(what, ", tags ");
        tell_tags(chosen, what);
    }
    str_release(&all);
    return ok;
}

/* The bytes of a message of that form, binary. */
static bool import_form(struct graph *graph, enum form form, const struct str *bytes,
                        const char *tags, struct str *what, struct error *err)
{
    if (form == GRAPH)
        return graph_import(graph, str_text(bytes), bytes->size, err);
    struct arena *arena =
        arena_new_limited(bytes->size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
    const void *message =
        message_unpack(descriptors[form], str_text(bytes), bytes->size, arena, err);
    bool ok = message && (form == META_GRAPH ? import_meta(graph, message, what, err)
                                             : import_saved(graph, message, tags, what, err));
    arena_free(arena);
    return ok;
}

/* --- the file --- */

/* A folder stands for the SavedModel in it. */
static bool read_bytes(const char *path, struct str *bytes, struct error *err)
{
    static const char *const names[] = {"saved_model.pb", "saved_model.pbtxt"};
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return file_read(path, FILE_BYTES_MAX, bytes, err);
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        struct str inside = {0};
        str_printf(&inside, "%s/%s", path, names[i]);
        bool there = stat(str_text(&inside), &info) == 0;
        bool ok = there && file_read(str_text(&inside), FILE_BYTES_MAX, bytes, err);
        str_release(&inside);
        if (there)
            return ok;
    }
    return fail(err, NOT_FOUND, "%s is a folder without saved_model.pb or saved_model.pbtxt",
                path);
}

bool graph_file_read(const char *path, const char *tags, struct graph *graph, struct str *what,
                     struct error *err)
{
    struct str bytes = {0}, wire = {0};
    bool ok = read_bytes(path, &bytes, err), text = ok && is_text(&bytes);
    enum form form = !ok ? NO_GRAPH : text ? form_of_text(&bytes) : form_of_wire(&bytes);
    if (ok && form == NO_GRAPH)
        ok =
            fail(err, INVALID,
                 "%s is %s; what can be read: GraphDef, MetaGraphDef and SavedModel, binary or "
                 "text",
                 path, other_form(&bytes));
    if (ok)
        str_printf(what, "%s, %s", form_names[form], text ? "text" : "binary");
    if (ok && text)
        ok = text_serialize(descriptors[form], str_text(&bytes), bytes.size, &wire, err);
    ok = ok && import_form(graph, form, text ? &wire : &bytes, tags, what, err);
    if (!ok && form != NO_GRAPH)
        ok = error_prefix(err, "%s (%s): ", path, form_names[form]);
    str_release(&bytes);
    str_release(&wire);
    return ok;
}
