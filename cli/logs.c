/* logs.c - trainyard logs. */

#include "base/str.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "server/url.h"

struct logs {
    bool many; /* more than one task or stream: lines say whose they are */
    const char *stream;
};

static void print_line(const struct logs *logs, json_t *line)
{
    const char *stream = json_string_value(json_object_get(line, "stream"));
    const char *text = json_string_value(json_object_get(line, "text"));
    const char *task = json_string_value(json_object_get(line, "task"));
    if (!stream || !text || !task || (logs->stream && strcmp(stream, logs->stream) != 0))
        return;
    if (logs->many)
        printf("%s %s | ", task, stream);
    puts(text);
}

static bool on_event(void *self, const char *topic, json_t *event)
{
    json_t *data = json_object_get(event, "data");
    size_t index;
    json_t *line;
    if (strcmp(topic, "job.logs") == 0)
        json_array_foreach(json_object_get(data, "lines"), index, line)
        {
            print_line(self, line);
        }
    fflush(stdout);
    const char *state = json_string_value(json_object_get(data, "state"));
    return strcmp(topic, "job.state") != 0 || !state ||
           (strcmp(state, "succeeded") != 0 && strcmp(state, "failed") != 0 &&
            strcmp(state, "cancelled") != 0);
}

static bool print_end(struct client *client, const char *job, int64_t tail, struct logs *logs,
                      long long *seq, struct error *err)
{
    struct str path = {0};
    str_add(&path, "/api/v1/jobs/");
    url_encode(&path, job);
    str_printf(&path, "/logs?tail=%lld", (long long)tail);
    if (logs->stream) {
        str_add(&path, "&stream=");
        url_encode(&path, logs->stream);
    }
    json_t *answer = client_json(client, "GET", str_text(&path), NULL, NULL, err);
    str_release(&path);
    if (!answer)
        return false;
    int written = 0;
    size_t index;
    json_t *item;
    json_array_foreach(json_object_get(answer, "logs"), index, item)
    {
        written += json_integer_value(json_object_get(item, "size")) > 0;
    }
    logs->many = written > 1;
    json_array_foreach(json_object_get(answer, "items"), index, item)
    {
        print_line(logs, item);
    }
    fflush(stdout);
    *seq = json_integer_value(json_object_get(answer, "seq"));
    json_decref(answer);
    return true;
}

/* Logs go on after `seq`; the state is given as it stands, so that a job that has ended ends
 * this too. */
static bool follow(struct client *client, const char *job, struct logs *logs, long long seq,
                   struct error *err)
{
    struct str path = {0};
    str_add(&path, "/api/v1/jobs/");
    url_encode(&path, job);
    str_printf(&path, "/events?topics=logs,state&after=%lld-0", seq);
    struct client_follower follower = {on_event, NULL, NULL, logs};
    bool ok = client_follow(client, str_text(&path), &follower, err);
    str_release(&path);
    return ok;
}

int logs_main(int argc, char **argv)
{
    const char *folder = NULL;
    struct logs logs = {0};
    int64_t tail = 1000;
    bool following = false;
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {"tail", OPTION_NUMBER, &tail, "this many lines of each log (1000)"},
        {"stream", OPTION_TEXT, &logs.stream, "stdout or stderr (both)"},
        {"f", OPTION_FLAG, &following, "go on as lines are written, until the job ends"},
        {0},
    };
    static const char usage[] = "logs JOB [options]";
    struct options_words words;
    struct error err;
    long long seq;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 1, &words, &err))
        return cli_usage(usage, rows, &err);
    struct client *client = client_open(folder, &err);
    if (!client)
        return cli_fail(&err);
    bool ok = print_end(client, words.word[0], tail, &logs, &seq, &err) &&
              (!following || follow(client, words.word[0], &logs, seq, &err));
    client_close(client);
    return ok ? CLI_OK : cli_fail(&err);
}
