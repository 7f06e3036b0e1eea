/* page.c - what could not be, why, and what to do. */

#include "server/page.h"

#include "base/error.h"
#include "base/str.h"
#include "server/reply.h"
#include "server/request.h"

static void add_text(struct str *page, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            str_add(page, "&lt;");
        else if (*text == '&')
            str_add(page, "&amp;");
        else
            str_add_char(page, *text);
    }
}

bool page_refused(struct request *req, int status, const char *heading, const struct error *why,
                  const char *next)
{
    struct str page = {0};
    str_printf(&page,
               "<!doctype html><meta charset=utf-8><title>Sign in to Trainyard</title>"
               "<h1>%s</h1><p>",
               heading);
    add_text(&page, why->text);
    str_printf(&page, "<p>%s", next);
    size_t size = page.size;
    reply_header(req, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    return reply_owned(req, status, "text/html; charset=utf-8", str_take(&page), size);
}
