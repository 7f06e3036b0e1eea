/* exit.c - reads exit.json. */

#include "scheduler/agent/exit.h"

#include <signal.h>
#include <string.h>

#include "base/error.h"
#include "scheduler/agent/files.h"

/* A program's exit codes are its own: any but 0 is its error, and those of a shell, signals. */
static enum agent_exit_reason program_reason(const json_t *end, int64_t code)
{
    if (code == 0)
        return AGENT_EXIT_OK;
    if (files_bool(end, "killed") || files_bool(end, "terminated"))
        return AGENT_EXIT_STOPPED;
    return code > 128 ? AGENT_EXIT_CRASH : AGENT_EXIT_USER;
}

enum agent_exit_reason exit_reason(const json_t *end, bool program)
{
    int64_t code = files_int(end, "code"), number = files_int(end, "signal");
    if (program && files_bool(end, "refused"))
        return AGENT_EXIT_USER;
    if (*files_text(end, "error"))
        return AGENT_EXIT_START;
    if (files_bool(end, "oom"))
        return AGENT_EXIT_MEMORY;
    if (number == SIGKILL && files_bool(end, "killed"))
        return AGENT_EXIT_STOPPED;
    if (number == SIGTERM && files_bool(end, "terminated"))
        return AGENT_EXIT_STOPPED;
    if (number)
        return AGENT_EXIT_CRASH;
    if (program)
        return program_reason(end, code);
    return code == 0   ? AGENT_EXIT_OK
           : code == 2 ? AGENT_EXIT_USER
           : code == 3 ? AGENT_EXIT_STOPPED
                       : AGENT_EXIT_CRASH;
}

void exit_text(const char *folder, const json_t *end, const json_t *start, char *out,
               size_t out_size)
{
    struct error err;
    char line[300];
    json_t *own = files_read_json(folder, "error.json", &err);
    const char *last = files_last_line(folder, "stderr.log", line, sizeof(line));
    int64_t number = files_int(end, "signal"), code = files_int(end, "code");
    const char *pointer = files_text(own, "pointer");
    out[0] = '\0';
    if (*files_text(end, "error"))
        snprintf(out, out_size, "%s", files_text(end, "error"));
    else if (own && *files_text(own, "text"))
        snprintf(out, out_size, "%s%s%s", pointer, *pointer ? ": " : "",
                 files_text(own, "text"));
    else if (files_bool(end, "oom"))
        snprintf(out, out_size, "it used more than the %lld bytes of memory that it asked for",
                 (long long)files_int(start, "memory_bytes"));
    else if (number == SIGKILL && files_bool(end, "killed"))
        snprintf(out, out_size, "killed, as was asked");
    else if (number)
        snprintf(out, out_size, "ended by signal %d (%s)%s%s", (int)number,
                 strsignal((int)number), *last ? "; its last words: " : "", last);
    else if (code != 0 && (code != 3 || json_object_get(start, "program")))
        snprintf(out, out_size, "exit code %d%s%s", (int)code,
                 *last ? "; its last words: " : "", last);
    json_decref(own);
}
