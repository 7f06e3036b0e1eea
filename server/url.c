/* url.c - decoding of request targets. */

#include <strings.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "server/url.h"

#define URL_QUERY_MAX 32

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Decodes `size` bytes into the arena.  `in_query`: '+' is a blank, and "%2f" is harmless. */
static const char *decode(struct arena *arena, const char *text, size_t size, bool in_query,
                          struct error *err)
{
    char *out = arena_alloc(arena, size + 1);
    size_t length = 0;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        bool escaped = c == '%';
        if (escaped) {
            int high = size - i > 2 ? hex_value(text[i + 1]) : -1;
            int low = size - i > 2 ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return fail_null(err, INVALID, "the URL has a '%%' without two hex digits");
            c = (char)(high * 16 + low);
            i += 2;
        } else if (in_query && c == '+') {
            c = ' ';
        }
        if ((unsigned char)c < 0x20 || c == 0x7f)
            return fail_null(err, INVALID, "the URL has a control character in it");
        if (!in_query && (c == '\\' || (escaped && c == '/')))
            return fail_null(err, INVALID, "the URL has an escaped '/' or a '\\' in its path");
        out[length++] = c;
    }
    if (!str_is_utf8(out, length))
        return fail_null(err, INVALID, "the URL is not UTF-8");
    return out;
}

static bool check_segments(const char *path, struct error *err)
{
    if (path[0] != '/')
        return fail(err, INVALID, "the URL does not begin with '/'");
    for (const char *start = path + 1; start;) {
        const char *slash = strchr(start, '/');
        size_t size = slash ? (size_t)(slash - start) : strlen(start);
        if (!size && slash)
            return fail(err, INVALID, "the URL has an empty segment ('//')");
        if ((size == 1 && start[0] == '.') || (size == 2 && start[0] == '.' && start[1] == '.'))
            return fail(err, INVALID, "the URL has a segment '.' or '..'");
        start = slash ? slash + 1 : NULL;
    }
    return true;
}

static bool parse_query(struct arena *arena, const char *text, struct url *url,
                        struct error *err)
{
    struct url_pair *pairs = arena_array(arena, URL_QUERY_MAX, sizeof(*pairs));
    int count = 0;
    while (*text) {
        size_t size = strcspn(text, "&");
        if (size) {
            if (count == URL_QUERY_MAX)
                return fail(err, INVALID, "the URL has more than %d parameters", URL_QUERY_MAX);
            const char *equals = memchr(text, '=', size);
            size_t name_size = equals ? (size_t)(equals - text) : size;
            const char *value = equals ? equals + 1 : text + size;
            size_t value_size = (size_t)(text + size - value);
            struct url_pair *pair = &pairs[count++];
            pair->name = decode(arena, text, name_size, true, err);
            if (!pair->name)
                return false;
            pair->value = decode(arena, value, value_size, true, err);
            if (!pair->value)
                return false;
        }
        text += size + (text[size] == '&');
    }
    url->query = pairs;
    url->query_count = count;
    return true;
}

bool url_parse(struct arena *arena, const char *target, struct url *url, struct error *err)
{
    *url = (struct url){0};
    size_t path_size = strcspn(target, "?");
    if (strchr(target, '#'))
        return fail(err, INVALID, "the URL has a '#' in it");
    url->path = decode(arena, target, path_size, false, err);
    if (!url->path || !check_segments(url->path, err))
        return false;
    const char *query = target[path_size] == '?' ? target + path_size + 1 : "";
    return parse_query(arena, query, url, err);
}

const char *url_find(const struct url_pair *pairs, int count, const char *name,
                     bool ignore_case)
{
    for (int i = 0; i < count; i++)
        if ((ignore_case ? strcasecmp(pairs[i].name, name) : strcmp(pairs[i].name, name)) == 0)
            return pairs[i].value;
    return NULL;
}

void url_encode(struct str *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
        if (plain)
            str_add_char(out, (char)c);
        else
            str_printf(out, "%%%02X", c);
    }
}
