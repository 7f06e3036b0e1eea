/* openapi_parameters.c - what the values of parameters may be, by their names. */

#include "server/openapi.h"

#define NAME "{\"pattern\":\"^[A-Za-z0-9._-]{1,128}$\"}"
#define WHOLE_NUMBER "{\"pattern\":\"^[0-9]{1,18}$\"}"
#define FROM_0 "{\"minimum\":0,\"maximum\":9007199254740991}"
#define FROM_1 "{\"minimum\":1,\"maximum\":9007199254740991}"

/* clang-format off */
const struct openapi_schema openapi_parameters[] = {
    {"id", NAME}, {"name", NAME}, {"user", "{\"pattern\":\"^[^\\\\u0000-\\\\u001f\\\\u007f-\\\\u009f/]*$\"}"},
    {"step", WHOLE_NUMBER}, {"delivery", WHOLE_NUMBER},
    {"sha256", "{\"pattern\":\"^[0-9a-f]{64}$\"}"},
    {"code", "{\"pattern\":\"^[a-z-]{1,60}$\"}"},
    {"path", "{\"pattern\":\"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$\"}"},
    {"limit", "{\"minimum\":1,\"maximum\":1000}"},
    {"buckets", "{\"minimum\":1,\"maximum\":10000}"},
    {"tail", "{\"minimum\":1,\"maximum\":100000}"},
    {"attempt", "{\"minimum\":1,\"maximum\":2147483647}"},
    {"cursor", "{\"minimum\":1,\"maximum\":9007199254740991,\"pattern\":\"^[1-9][0-9]{0,15}$\"}"},
    {"array", FROM_1}, {"offset", FROM_0}, {"from", FROM_0}, {"to", FROM_0}, {"after_seq", FROM_0},
    {"dry_run", "{\"const\":\"plan\"}"},
    {"order_by", "{\"pattern\":\"^-?(created_at|name|priority|metrics[.][^\\\\u0000-\\\\u001f\\\\u007f]{1,200})$\"}"},
    {"filter", "{\"pattern\":\"^(metrics[.][A-Za-z0-9_./-]{1,100}|priority) (=|!=|<|<=|>|>=) [0-9]{1,9}$\"}"},
    {"state", "{\"pattern\":\"^((queued|paused|allocated|starting|running|stopping|succeeded|failed|cancelled)"
              "(,(queued|paused|allocated|starting|running|stopping|succeeded|failed|cancelled)){0,8})?$\"}"},
    {"fields", "{\"pattern\":\"^[a-z_,]{1,200}$\"}"},
    {"names", "{\"pattern\":\"^[A-Za-z0-9_,./-]{0,200}$\"}"},
    {"stream", "{\"enum\":[\"stdout\",\"stderr\"]}"},
    {"task", "{\"pattern\":\"^(worker|ps|chief|evaluator)/[0-9]{1,2}$\"}"},
    {"Idempotency-Key", "{\"pattern\":\"^[!-~]{1,128}$\"}"},
    {"If-Match", "{\"pattern\":\"^([*]|\\\"[1-9][0-9]{0,17}\\\")$\"}"},
    {"Last-Event-ID", "{\"pattern\":\"^[0-9]{1,15}(-[0-9]{1,15}){0,6}$\"}"},
    {"Accept", "{\"enum\":[\"text/event-stream\",\"application/x-ndjson\"]}"},
    {0},
};
