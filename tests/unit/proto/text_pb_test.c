/* text_pb_test.c - messages in text form: what TensorFlow writes, what people write, what is
 * wrong. */

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "proto/text.h"
#include "tensorflow/graph.pb-c.h"
#include "tests/unit/test.h"

typedef Tensorflow__GraphDef graph_def;

static struct error err;

static graph_def *parse(const char *text, struct arena *arena)
{
    struct str wire = {0};
    CHECK_OK(
        text_serialize(&tensorflow__graph_def__descriptor, text, strlen(text), &wire, &err),
        &err);
    graph_def *graph = message_unpack(&tensorflow__graph_def__descriptor, str_text(&wire),
                                      wire.size, arena, &err);
    CHECK_OK(graph, &err);
    str_release(&wire);
    return graph;
}

TEST(text_of_every_kind_is_read)
{
    struct arena *arena = arena_new();
    graph_def *graph = parse(
        "# a comment\n"
        "node { name: \"a\" 'b' op: \"Const\" input: [\"x\", '^y'] ;\n"
        "  attr { key: \"s\" value { s: \"\\001\\x41\\n\\\"\\u00e9\" } },\n"
        "  attr < key: \"i\" value < i: -0x10 > >\n"
        "  attr { key: \"l\" value: { list: { f: [1.5f, -inf, nan, 1e-3] b: true b: false "
        "type: DT_FLOAT type: 3 } } }\n"
        "  attr { key: \"t\" value { shape { dim [{ size: 3 }, { size: -1 }] } } }\n"
        "  experimental_type { type_id: TFT_PRODUCT args { s: \"}\" } } }\n"
        "node { }\nversions { producer: 22, bad_consumers: [] }\n"
        "debug_info { files: \"}\" traces { key: 3 } }\n",
        arena);
    CHECK_INT(graph->n_node, 2);
    const Tensorflow__NodeDef *node = graph->node[0];
    CHECK_TEXT(node->name, "ab");
    CHECK_INT(node->n_input, 2);
    CHECK_TEXT(node->input[1], "^y");
    CHECK_INT(node->n_attr, 4);
    CHECK_INT(node->attr[0]->value->s.len, 6);
    CHECK(!memcmp(node->attr[0]->value->s.data, "\1A\n\"\xc3\xa9", 6));
    CHECK_INT(node->attr[1]->value->i, -16);
    const Tensorflow__AttrValue__ListValue *list = node->attr[2]->value->list;
    CHECK_INT(list->n_f, 4);
    CHECK(list->f[0] == 1.5f && isinf(list->f[1]) && list->f[1] < 0 && isnan(list->f[2]));
    CHECK_INT(list->n_b, 2);
    CHECK(list->b[0] && !list->b[1]);
    CHECK_INT(list->n_type, 2);
    CHECK_INT(list->type[1], 3);
    CHECK_INT(node->attr[3]->value->shape->n_dim, 2);
    CHECK_INT(node->attr[3]->value->shape->dim[1]->size, -1);
    CHECK_INT(node->experimental_type->type_id, TENSORFLOW__FULL_TYPE_ID__TFT_PRODUCT);
    CHECK_TEXT(node->experimental_type->args[0]->s, "}");
    CHECK_INT(graph->debug_info.len, 0);
    CHECK_INT(graph->versions->producer, 22);
    arena_free(arena);
}

static void check_bad(const char *text, const char *why)
{
    struct str wire = {0};
    CHECK(!text_serialize(&tensorflow__graph_def__descriptor, text, strlen(text), &wire, &err));
    CHECK_INT(err.code, INVALID);
    if (!strstr(err.text, why))
        CHECK_STOP("\"%s\", not \"%s\"", err.text, why);
    CHECK_INT(wire.size, 0);
    str_release(&wire);
}

TEST(what_is_wrong_is_told_with_its_line)
{
    check_bad("node {\n nome: \"a\" }",
              "line 2: there is no field \"nome\" (in tensorflow.Node");
    check_bad("node { name: a }", "a string is missing");
    check_bad("node { name: \"a }\n", "a string does not end");
    check_bad("node { name: \"\\q\" }", "a bad escape");
    check_bad("node { name \"a\" }", "a ':' is missing after \"name\"");
    check_bad("node: 3", "a '{' is missing after \"node\"");
    check_bad("node { name: \"a\"", "a message does not end");
    check_bad("node { name { } }", "not a message");
    check_bad("versions { producer: many }", "no integer: \"many\"");
    check_bad("node { attr { value { type: DT_FLAOT } } }", "no value of this kind");
    check_bad("node { attr { value { b: maybe } } }", "neither true nor false");
    check_bad("node { attr { value { f: 1.x } } }", "no number");
    check_bad("node { input: [\"a\" \"b\" 3] }", "");
    check_bad("}", "a name or a value is missing");
    check_bad("debug_info { files: ", "a message does not end");
    check_bad("node: [ { name: \"a\" } 5 ]", "a '{' is missing in the list \"node\"");
    check_bad("node { name: [\"a\"] }", "not a list: \"name\"");
    check_bad("node { name: \"a\" name: \"b\" }", "comes twice: \"name\"");
    check_bad("node { attr { value { } key: \"a\" value { } } }", "comes twice: \"value\"");
    check_bad("node { attr { value { i: 1 b: true } } }",
              "a field that excludes it came before \"b\"");
}

TEST(nesting_has_a_limit)
{
    struct str text = {0};
    str_add(&text, "node { ");
    for (int i = 0; i < LIMIT_MESSAGE_DEPTH; i++)
        str_add(&text, "attr { value { func { ");
    check_bad(str_text(&text), "nested too deeply");
    str_release(&text);
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(Tensorflow__NodeDef__AttrEntry *const *)a)->key,
                  (*(Tensorflow__NodeDef__AttrEntry *const *)b)->key);
}

/* Serialized, with attributes in order. */
static void normal_form(graph_def *graph, struct str *out)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        Tensorflow__NodeDef *node = graph->node[i];
        qsort(node->attr, node->n_attr, sizeof(*node->attr), by_key);
    }
    message_pack(&graph->base, out);
}

static bool read_shared(const char *name, struct str *out)
{
    const char *shared = getenv("TRAINYARD_SHARED");
    char path[512];
    snprintf(path, sizeof(path), "%s/tf-files/graphs/%s", shared ? shared : "../shared", name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    for (int c; (c = fgetc(file)) != EOF;)
        str_add_char(out, (char)c);
    fclose(file);
    return true;
}

TEST(what_tensorflow_prints_is_what_it_serializes)
{
    static const char *const pairs[][2] = {{"text-format/graph.pbtxt", "text-format/graph.pb"},
                                           {"cnn/frozen.pbtxt", "cnn/frozen.pb"},
                                           {"mlp/frozen.pbtxt", "mlp/frozen.pb"},
                                           {"cond-v1/frozen.pbtxt", "cond-v1/frozen.pb"}};
    for (int i = 0; i < ARRAY_LEN(pairs); i++) {
        struct str text = {0}, binary = {0}, is = {0}, wanted = {0};
        if (!read_shared(pairs[i][0], &text) || !read_shared(pairs[i][1], &binary)) {
            printf("skip %s: no recorded files beside this clone\n", pairs[i][0]);
        } else {
            struct arena *arena = arena_new();
            graph_def *graph = message_unpack(&tensorflow__graph_def__descriptor,
                                              str_text(&binary), binary.size, arena, &err);
            CHECK_OK(graph, &err);
            normal_form(parse(str_text(&text), arena), &is);
            normal_form(graph, &wanted);
            CHECK_INT(is.size, wanted.size);
            CHECK(!memcmp(str_text(&is), str_text(&wanted), is.size));
            arena_free(arena);
        }
        str_release(&text);
        str_release(&binary);
        str_release(&is);
        str_release(&wanted);
    }
}
