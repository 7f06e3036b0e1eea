/* text_pb.c - see text_pb.h. */

#include "tests/interop/saved/text_pb.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/text.h"
#include "runtime/io/file.h"
#include "tensorflow/graph.pb-c.h"

#define FILE_BYTES_MAX (1 << 28)

static bool read_file(const char *folder, const char *name, struct str *out, struct error *err)
{
    char *path = alloc_printf("%s/%s", folder, name);
    bool ok = file_read(path, FILE_BYTES_MAX, out, err);
    free(path);
    return ok;
}

static bool check_same(const struct str *got, const struct str *want, struct error *err)
{
    const char *a = str_text(got), *b = str_text(want);
    int line = 1;
    size_t at = 0;
    while (at < got->size && at < want->size && a[at] == b[at])
        line += a[at++] == '\n';
    while (at && a[at - 1] != '\n')
        at--;
    return (got->size == want->size && !memcmp(a, b, got->size)) ||
           fail(err, INVALID, "line %d is \"%.*s\", wanted \"%.*s\"", line,
                (int)strcspn(a + at, "\n"), a + at, (int)strcspn(b + at, "\n"), b + at);
}

bool text_check_pair(const char *folder, const char *binary, const char *text,
                     struct error *err)
{
    const ProtobufCMessageDescriptor *graph = &tensorflow__graph_def__descriptor;
    struct str bytes = {0}, spelled = {0}, wire = {0}, printed = {0}, again = {0};
    bool ok = read_file(folder, binary, &bytes, err) &&
              read_file(folder, text, &spelled, err) &&
              text_serialize(graph, str_text(&spelled), spelled.size, &wire, err) &&
              text_print(graph, str_text(&bytes), bytes.size, &printed, err) &&
              text_print(graph, str_text(&wire), wire.size, &again, err) &&
              check_same(&printed, &spelled, err) && check_same(&again, &spelled, err);
    str_release(&bytes);
    str_release(&spelled);
    str_release(&wire);
    str_release(&printed);
    str_release(&again);
    return ok;
}

bool text_check_print(const char *folder, const char *text, struct error *err)
{
    const ProtobufCMessageDescriptor *graph = &tensorflow__graph_def__descriptor;
    struct str spelled = {0}, wire = {0}, printed = {0};
    bool ok = read_file(folder, text, &spelled, err) &&
              text_serialize(graph, str_text(&spelled), spelled.size, &wire, err) &&
              text_print(graph, str_text(&wire), wire.size, &printed, err) &&
              check_same(&printed, &spelled, err);
    str_release(&spelled);
    str_release(&wire);
    str_release(&printed);
    return ok;
}
