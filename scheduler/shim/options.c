/* options.c - reads the arguments of trainyard-shim. */

#include "scheduler/shim/options.h"

#define LOG_LIMIT_BYTES (INT64_C(64) << 20)
#define RESTARTS_MAX 1000

const char options_usage[] =
    "usage: trainyard-shim --folder DIR --cookie C [--memory BYTES] [--log-limit BYTES] "
    "[--workdir DIR] [--user UID:GROUP] [--cgroup none] [--restarts N] [--private "
    "task|group|tmp] [--hide DIR] [--show PATH] [--named PATH] -- PROGRAM [ARG]...\n";

static bool user_parse(struct options *options, const char *text)
{
    int used = 0;
    return sscanf(text, "%10u:%10u%n", &options->user, &options->group, &used) == 2 &&
           !text[used] && options->user;
}

static bool private_parse(struct options *options, const char *name, const char *value)
{
    struct private_view *view = &options->view;
    if (strcmp(name, "--hide") == 0)
        return private_add(&view->hide, value);
    if (strcmp(name, "--show") == 0)
        return private_add(&view->show, value);
    if (strcmp(name, "--named") == 0)
        return private_add(&view->named, value);
    view->memory = strcmp(value, "task") == 0;
    view->wanted = view->memory || strcmp(value, "group") == 0;
    options->own_tmp = view->wanted || strcmp(value, "tmp") == 0;
    return strcmp(name, "--private") == 0 && options->own_tmp;
}

bool options_parse(struct options *options, int count, char **arguments)
{
    options->log_bytes = LOG_LIMIT_BYTES;
    int i = 1;
    for (; i + 1 < count && strcmp(arguments[i], "--") != 0; i += 2) {
        const char *value = arguments[i + 1];
        if (strcmp(arguments[i], "--folder") == 0)
            options->folder = value;
        else if (strcmp(arguments[i], "--cookie") == 0)
            options->cookie = value;
        else if (strcmp(arguments[i], "--memory") == 0)
            options->memory_bytes = strtoll(value, NULL, 10);
        else if (strcmp(arguments[i], "--restarts") == 0)
            options->restarts = (int)strtol(value, NULL, 10);
        else if (strcmp(arguments[i], "--log-limit") == 0)
            options->log_bytes = strtoll(value, NULL, 10);
        else if (strcmp(arguments[i], "--workdir") == 0)
            options->workdir = value;
        else if (strcmp(arguments[i], "--user") == 0 && user_parse(options, value))
            continue;
        else if (strcmp(arguments[i], "--cgroup") == 0 && strcmp(value, "none") == 0)
            options->no_cgroup = true;
        else if (!private_parse(options, arguments[i], value))
            return false;
    }
    options->view.memory_bytes = options->memory_bytes;
    options->command = arguments + i + 1;
    /* The cookie becomes part of a path and of JSON. */
    return options->folder && options->cookie && strlen(options->cookie) <= 64 &&
           strspn(options->cookie, "0123456789abcdefghijklmnopqrstuvwxyz-") ==
               strlen(options->cookie) &&
           options->restarts >= 0 && options->restarts <= RESTARTS_MAX && i + 1 < count &&
           (!options->own_tmp || *options->folder == '/');
}
