/* labels.c - NAME=VALUE, separated by commas. */

#include "scheduler/agent/labels.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "proto/agent_pb.h"

static bool label_parse(char *word, struct agent_label *label, struct error *err)
{
    size_t size = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                               "0123456789._-");
    if (!size || size > LIMIT_NAME_BYTES || word[size] != '=')
        return fail(err, INVALID,
                    "'%.100s' is no label; it must be NAME=VALUE, the name of letters, digits, "
                    "'.', '_' and '-', at most %d of them",
                    word, LIMIT_NAME_BYTES);
    word[size] = '\0';
    *label = (struct agent_label){.name = word, .value = word + size + 1};
    if (strlen(label->value) > LIMIT_NAME_BYTES)
        return fail(err, INVALID, "label %s has a value of %zu bytes; at most %d", word,
                    strlen(label->value), LIMIT_NAME_BYTES);
    return true;
}

bool labels_parse(const char *text, struct labels *labels, struct error *err)
{
    *labels = (struct labels){.list = alloc_array(LABELS_MAX, sizeof(*labels->list)),
                              .text = alloc_text(text ? text : "")};
    char *rest = labels->text;
    for (char *word; (word = strsep(&rest, ","));) {
        if (!*word && !rest && !labels->count)
            break;
        if (labels->count == LABELS_MAX)
            return fail(err, INVALID, "more than %d labels", LABELS_MAX);
        if (!label_parse(word, &labels->list[labels->count], err))
            return false;
        labels->count++;
    }
    return true;
}

void labels_add(struct labels *labels, const char *name, const char *value)
{
    for (int i = 0; i < labels->count; i++) {
        if (strcmp(labels->list[i].name, name) == 0)
            return;
    }
    if (labels->count < LABELS_MAX)
        labels->list[labels->count++] = (struct agent_label){name, value};
}

void labels_release(struct labels *labels)
{
    free(labels->list);
    free(labels->text);
    *labels = (struct labels){0};
}
