/* specfile.c - a spec from a file, from stdin ("-"), or a shipped example by its name. */

#include "cli/specfile.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/spec/spec_embed.h"

static bool read_file(const char *path, struct str *text, struct error *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!file)
        return error_errno(err, NOT_FOUND, "%s", path);
    size_t size;
    char part[16384];
    while ((size = fread(part, 1, sizeof(part), file)) > 0 &&
           text->size <= LIMIT_HTTP_BODY_BYTES)
        str_add_bytes(text, part, size);
    bool ok = !ferror(file) || error_errno(err, UNAVAILABLE, "%s", path);
    if (file != stdin)
        fclose(file);
    return ok;
}

json_t *specfile_read(const char *word, struct error *err)
{
    struct stat info; /* a folder of that name is its data, as a rule */
    bool is_there = stat(word, &info) == 0 && !S_ISDIR(info.st_mode);
    if (strcmp(word, "-") != 0 && !is_there && !strchr(word, '/') && !strstr(word, ".json"))
        return json_pack("{s:s}", "example", word);
    struct str text = {0};
    json_t *spec = NULL;
    if (read_file(word, &text, err)) {
        json_error_t where;
        spec = json_loadb(str_text(&text), text.size, JSON_REJECT_DUPLICATES, &where);
        if (!spec)
            fail(err, INVALID, "%s, line %d, column %d: %s", word, where.line, where.column,
                 where.text);
        else if (!json_is_object(spec)) {
            json_decref(spec);
            spec = fail_null(err, INVALID, "%s: a spec is a JSON object", word);
        } else if (!spec_embed(spec, word, NULL, err)) {
            json_decref(spec);
            spec = NULL;
        }
    }
    str_release(&text);
    return spec;
}
