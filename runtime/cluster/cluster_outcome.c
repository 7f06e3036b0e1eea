/* cluster_outcome.c - the errors of a step's parts as one. */

#include "base/error.h"
#include "base/error_whole.h"
#include "base/str.h"
#include "runtime/cluster/internal.h"

static bool is_marked(const struct error *err)
{
    return !strncmp(err->text, EXECUTE_DERIVED, strlen(EXECUTE_DERIVED));
}

/* A stock task says so, unmarked, when it is told to clean up while it still runs. */
static bool is_cleanup(const struct error *err)
{
    static const char begins[] = "Cleanup ";
    const char *id = err->text + sizeof(begins) - 1;
    return err->code == ABORTED && !strncmp(err->text, begins, sizeof(begins) - 1) &&
           *id >= '0' && *id <= '9';
}

bool cluster_outcome_is_derived(const struct error *err)
{
    return is_marked(err) || is_cleanup(err);
}

static void add(const struct cluster_outcome *part, struct str *out)
{
    struct str whole = {0};
    error_whole_add(part->err, &whole);
    if (is_marked(part->err))
        str_drop(&whole, strlen(EXECUTE_DERIVED));
    str_printf(out, "From %s:\n%s", part->task, str_text(&whole));
    str_release(&whole);
}

static bool is_own(const struct cluster_outcome *part)
{
    return part->err && !cluster_outcome_is_derived(part->err);
}

/* A step is only said to be cancelled when nothing else is known of it. */
static enum error_code code_of(const struct cluster_outcome *parts, int count)
{
    for (int i = 0; i < count; i++)
        if (is_own(&parts[i]) && parts[i].err->code != CANCELLED)
            return parts[i].err->code;
    return CANCELLED;
}

static void add_all(const struct cluster_outcome *parts, int count, int own, struct str *out)
{
    int number = 0, derived = 0;
    str_printf(out, "%d root error(s) found.\n", own);
    for (int i = 0; i < count; i++) {
        derived += parts[i].err && !is_own(&parts[i]);
        if (!is_own(&parts[i]))
            continue;
        str_printf(out, "  (%d) %s: ", number++, error_code_name(parts[i].err->code));
        add(&parts[i], out);
        str_add_char(out, '\n');
    }
    str_printf(out, "%d successful operations.\n%d derived errors ignored.",
               count - own - derived, derived);
}

bool cluster_outcome_report(const struct cluster_outcome *parts, int count, struct error *err)
{
    const struct cluster_outcome *first = NULL, *cause = NULL;
    int own = 0;
    for (int i = count - 1; i >= 0; i--) {
        first = parts[i].err ? &parts[i] : first;
        cause = is_own(&parts[i]) ? &parts[i] : cause;
        own += is_own(&parts[i]);
    }
    if (!first)
        return true;
    struct str text = {0};
    enum error_code code = own > 1 ? code_of(parts, count) : (cause ? cause : first)->err->code;
    if (own > 1)
        add_all(parts, count, own, &text);
    else
        add(cause ? cause : first, &text);
    bool ok = fail(err, code, "%s", str_text(&text));
    str_release(&text);
    return ok;
}
