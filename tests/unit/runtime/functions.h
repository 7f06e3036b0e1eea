/*
 * functions.h - GraphDefs with functions, for tests, written as lines of text.
 *
 *   x = Placeholder() dtype=float          a node: name = Op(inputs) attributes
 *   def twice(a:float) (r:float) T:type    a function: arguments, results, attributes
 *     m = AddV2(a,a) T=$T                  a node of its body
 *     ret r m:z:0                          a result;  cret: a control result
 *   end
 *   gradient twice other
 *
 * Arguments: float, T, N*T, list:L.  Attributes: float, [float,int32], @function,
 * @function{T=float}, $placeholder, #7, !true, 'text, the shape
 * :scalar, and tensors (float:1.5).
 */
#pragma once

#include <stdlib.h>

#include "base/str.h"
#include "runtime/dtype.h"
#include "runtime/tensor_pb.h"
#include "tests/unit/test.h"

static void pb_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_char(out, (char)((value & 0x7f) | 0x80));
    str_add_char(out, (char)value);
}

static void pb_int(struct str *out, int number, int64_t value)
{
    pb_varint(out, (uint64_t)number << 3);
    pb_varint(out, (uint64_t)value);
}

static void pb_bytes(struct str *out, int number, const void *bytes, size_t size)
{
    pb_varint(out, (uint64_t)number << 3 | 2);
    pb_varint(out, size);
    str_add_bytes(out, bytes, size);
}

static void pb_text(struct str *out, int number, const char *text)
{
    pb_bytes(out, number, text, strlen(text));
}

/* Appends `part` as a message field, and empties it. */
static void pb_part(struct str *out, int number, struct str *part)
{
    pb_bytes(out, number, part->data ? part->data : "", part->size);
    str_release(part);
}

static void pb_value(struct str *out, const char *text);

/* "name" or "name{T=float}" as a NameAttrList. */
static void pb_func(struct str *out, const char *text)
{
    const char *brace = strchr(text, '{');
    const char *equal = brace ? strchr(brace, '=') : NULL;
    pb_bytes(out, 1, text, brace ? (size_t)(brace - text) : strlen(text));
    if (!equal)
        return;
    struct str entry = {0}, value = {0};
    char *inner = strndup(equal + 1, strlen(equal + 1) - 1);
    pb_bytes(&entry, 1, brace + 1, (size_t)(equal - brace - 1));
    pb_value(&value, inner);
    free(inner);
    pb_part(&entry, 2, &value);
    pb_part(out, 2, &entry);
}

static void pb_types(struct str *out, const char *text)
{
    struct str list = {0};
    char *copy = strndup(text + 1, strlen(text) - 2), *rest;
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (*word == '@') {
            struct str func = {0};
            pb_func(&func, word + 1);
            pb_part(&list, 9, &func);
        } else {
            pb_int(&list, 6, dtype_find(word));
        }
    }
    free(copy);
    pb_part(out, 1, &list);
}

static void pb_tensor(struct str *out, const char *text)
{
    struct error err;
    struct tensor tensor;
    struct str bytes = {0};
    const char *colon = strchr(text, ':');
    char *type = strndup(text + 1, (size_t)(colon - text - 1));
    CHECK_OK(tensor_init_scalar(&tensor, dtype_find(type), strtod(colon + 1, NULL), &err),
             &err);
    tensor_serialize(&tensor, &bytes);
    tensor_release(&tensor);
    free(type);
    pb_part(out, 8, &bytes);
}

/* An AttrValue. */
static void pb_value(struct str *out, const char *text)
{
    if (*text == '[')
        pb_types(out, text);
    else if (*text == '(')
        pb_tensor(out, text);
    else if (*text == '$')
        pb_text(out, 9, text + 1);
    else if (*text == '#')
        pb_int(out, 3, strtol(text + 1, NULL, 10));
    else if (*text == '!')
        pb_int(out, 5, 1);
    else if (*text == '\'')
        pb_text(out, 2, text + 1);
    else if (*text == ':')
        pb_bytes(out, 7, "", 0);
    else if (*text == '@') {
        struct str func = {0};
        pb_func(&func, text + 1);
        pb_part(out, 10, &func);
    } else {
        pb_int(out, 6, dtype_find(text));
    }
}

/* "name = Op(a,b:z:0,^c) key=value key=value" as a NodeDef. */
static void pb_node(struct str *out, char *line)
{
    char *equal = strstr(line, " = "), *open = strchr(line, '('), *close = strchr(line, ')');
    char *rest;
    *equal = *open = *close = 0;
    pb_text(out, 1, line);
    pb_text(out, 2, equal + 3);
    for (char *in = strtok_r(open + 1, ",", &rest); in; in = strtok_r(NULL, ",", &rest))
        pb_text(out, 3, in);
    for (char *word = strtok_r(close + 1, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest)) {
        struct str entry = {0}, value = {0};
        char *sign = strchr(word, '=');
        *sign = 0;
        pb_text(&entry, 1, word);
        pb_value(&value, sign + 1);
        pb_part(&entry, 2, &value);
        pb_part(out, 5, &entry);
    }
}

/* "a:float,b:N*T" as ArgDefs. */
static void pb_args(struct str *out, int number, char *text)
{
    char *rest;
    for (char *arg = strtok_r(text, ",", &rest); arg; arg = strtok_r(NULL, ",", &rest)) {
        struct str part = {0};
        char *type = strchr(arg, ':'), *star = strchr(arg, '*');
        *type++ = 0;
        pb_text(&part, 1, arg);
        if (star) {
            *star = 0;
            pb_text(&part, 5, type);
            type = star + 1;
        }
        if (!strncmp(type, "list:", 5))
            pb_text(&part, 6, type + 5);
        else if (dtype_find(type) != DTYPE_NONE)
            pb_int(&part, 3, dtype_find(type));
        else
            pb_text(&part, 4, type);
        pb_part(out, number, &part);
    }
}

/* "def name(args) (results) attr:kind ..." as an OpDef. */
static void pb_signature(struct str *out, char *line)
{
    char *open = strchr(line, '('), *close = strchr(open, ')');
    char *open2 = strchr(close, '('), *close2 = strchr(open2, ')'), *rest;
    *open = *close = *open2 = *close2 = 0;
    pb_text(out, 1, line + strlen("def "));
    pb_args(out, 2, open + 1);
    pb_args(out, 3, open2 + 1);
    for (char *attr = strtok_r(close2 + 1, " ", &rest); attr;
         attr = strtok_r(NULL, " ", &rest)) {
        struct str part = {0};
        char *colon = strchr(attr, ':');
        *colon = 0;
        pb_text(&part, 1, attr);
        pb_text(&part, 2, colon + 1);
        pb_part(out, 4, &part);
    }
}

static void pb_ret(struct str *out, int number, char *line)
{
    struct str entry = {0};
    char *name = strchr(line, ' ') + 1, *value = strchr(name, ' ');
    *value++ = 0;
    pb_text(&entry, 1, name);
    pb_text(&entry, 2, value);
    pb_part(out, number, &entry);
}

/* The lines as a serialized GraphDef. */
static struct str functions_graph(const char *lines)
{
    struct str graph = {0}, library = {0}, function = {0};
    bool inside = false;
    char *copy = strdup(lines), *rest;
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct str part = {0};
        line += strspn(line, " ");
        if (!strncmp(line, "def ", 4)) {
            pb_signature(&part, line);
            pb_part(&function, 1, &part);
            inside = true;
        } else if (!strcmp(line, "end")) {
            pb_part(&library, 1, &function);
            inside = false;
        } else if (!strncmp(line, "ret ", 4)) {
            pb_ret(&function, 4, line);
        } else if (!strncmp(line, "cret ", 5)) {
            pb_ret(&function, 6, line);
        } else if (!strncmp(line, "gradient ", 9)) {
            char *of = strchr(line, ' ') + 1, *by = strchr(of, ' ');
            *by++ = 0;
            pb_text(&part, 1, of);
            pb_text(&part, 2, by);
            pb_part(&library, 2, &part);
        } else if (*line) {
            pb_node(&part, line);
            pb_part(inside ? &function : &graph, inside ? 3 : 1, &part);
        }
    }
    free(copy);
    if (library.size)
        pb_part(&graph, 2, &library);
    return graph;
}
