/* node_error.c - from our words to TensorFlow's. */

#include "runtime/master/node_error.h"
#include "base/error.h"
#include "base/error_whole.h"
#include "base/str.h"
#include "runtime/kernel.h"

/* Cuts "node 'NAME' (OP): " off the text; false when it does not begin so. */
static bool cut_node(char *text, char *name, size_t name_size)
{
    static const char begins[] = "node '";
    if (strncmp(text, begins, sizeof(begins) - 1) != 0)
        return false;
    const char *at = text + sizeof(begins) - 1;
    const char *end = strstr(at, "' (");
    const char *rest = end ? strstr(end, "): ") : NULL;
    if (!rest || (size_t)(end - at) >= name_size)
        return false;
    memcpy(name, at, (size_t)(end - at));
    name[end - at] = 0;
    rest += 3;
    memmove(text, rest, strlen(rest) + 1);
    return true;
}

/* An error about a placeholder names it in its words. */
static bool name_placeholder(const char *text, char *name, size_t name_size)
{
    static const char begins[] = "You must feed a value for placeholder tensor '";
    if (strncmp(text, begins, sizeof(begins) - 1) != 0)
        return false;
    const char *at = text + sizeof(begins) - 1;
    size_t size = strcspn(at, "'");
    if (size >= name_size)
        return false;
    memcpy(name, at, size);
    name[size] = 0;
    return true;
}

bool node_error(struct error *err)
{
    char name[512];
    struct str nodes = {0}, whole = {0};
    bool named = false;
    error_whole_add(err, &whole); /* before its beginning goes */
    if (name_placeholder(err->text, name, sizeof(name)) && !strstr(err->text, "[[{{node "))
        str_printf(&nodes, "\n\t [[{{node %s}}]]", name);
    while (cut_node(err->text, name, sizeof(name))) {
        (void)cut_node(whole.data, name, sizeof(name));
        whole.size = strlen(whole.data);
        named = true;
        if (!kernel_error_is_at(err, name))
            str_printf(&nodes, "\n\t [[{{node %s}}]]", name);
    }
    named |= nodes.size > 0;
    size_t used = strlen(err->text), room = sizeof(err->text) - 1;
    if (nodes.size && nodes.size < room) {
        if (used + nodes.size > room) /* the node is worth more than the end of the text */
            used = room - nodes.size;
        memcpy(err->text + used, str_text(&nodes), nodes.size + 1);
        if (whole.size > used) {
            str_add_bytes(&whole, str_text(&nodes), nodes.size);
            error_whole_keep(err, str_text(&whole), whole.size);
        }
    }
    str_release(&nodes);
    str_release(&whole);
    return named;
}
