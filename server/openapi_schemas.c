/* openapi_schemas.c - the shapes of bodies, by hand: name and JSON Schema. */

#include "server/openapi.h"

#define TIME "{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"}"
#define TEXT "{\"type\":\"string\"}"
#define TEXT_OR_NULL "{\"type\":[\"string\",\"null\"]}"
#define INTEGER "{\"type\":\"integer\"}"
#define INTEGER_OR_NULL "{\"type\":[\"integer\",\"null\"]}"
#define NUMBER "{\"type\":\"number\"}"
#define BOUND "{\"type\":[\"number\",\"null\"],\"minimum\":0,\"maximum\":1000000000}"
#define NUMBER_OR_NULL "{\"type\":[\"number\",\"null\"]}"
#define ANY "{}"
#define VALUE "{\"type\":[\"number\",\"string\"]}" /* NaN and infinities are texts */
#define BOOLEAN "{\"type\":\"boolean\"}"
#define OBJECT "{\"type\":\"object\"}"
#define REF(name) "{\"$ref\":\"#/components/schemas/" name "\"}"
#define LIST(item) "{\"type\":\"array\",\"items\":" item "}"
#define MAP(item) "{\"type\":\"object\",\"additionalProperties\":" item "}"
#define FIELDS(fields) "{\"type\":\"object\",\"properties\":{" fields "}}"
#define FIRST(name, schema) "\"" name "\":" schema
#define FIELD(name, schema) ",\"" name "\":" schema
/* Of requests: nothing else may be there, and what is named first must. */
#define STRICT(required, fields)                                                               \
    "{\"type\":\"object\",\"additionalProperties\":false," required "\"properties\":{" fields  \
    "}}"
#define STRICT_OR_NULL(fields)                                                                 \
    "{\"type\":[\"object\",\"null\"],\"additionalProperties\":false,\"properties\":{" fields   \
    "}}"
#define REQUIRED(names) "\"required\":[" names "],"
#define SOME "\"minProperties\":1,"
#define NAME "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$\"}"
#define WHOLE(min, max) "{\"type\":\"integer\",\"minimum\":" #min ",\"maximum\":" #max "}"
#define WHOLE_OR_NULL(min, max)                                                                \
    "{\"type\":[\"integer\",\"null\"],\"minimum\":" #min ",\"maximum\":" #max "}"
#define BOOLEAN_OR_NULL "{\"type\":[\"boolean\",\"null\"]}"
#define PASSWORD "{\"type\":\"string\",\"minLength\":8,\"maxLength\":128}"
#define SHA256 "{\"type\":\"string\",\"pattern\":\"^[0-9a-f]{64}$\"}"
#define ROLE_OR_NONE "{\"enum\":[\"none\",\"viewer\",\"member\",\"admin\"]}"
#define ROLE "{\"enum\":[\"viewer\",\"member\",\"admin\"]}"
#define STATE                                                                                  \
    "{\"enum\":[\"queued\",\"allocated\",\"starting\",\"running\",\"stopping\","               \
    "\"succeeded\",\"failed\",\"cancelled\"]}"

/* clang-format off */
const struct openapi_schema openapi_schemas[] = {
    {"Problem", FIELDS(FIRST("type", TEXT) FIELD("title", TEXT) FIELD("status", INTEGER) FIELD("detail", TEXT)
        FIELD("instance", TEXT) FIELD("code", TEXT) FIELD("hint", TEXT) FIELD("request_id", TEXT)
        FIELD("errors", LIST(FIELDS(FIRST("pointer", TEXT) FIELD("detail", TEXT)))))},
    {"Session", FIELDS(FIRST("user", TEXT) FIELD("role", ROLE_OR_NONE) FIELD("projects", MAP(ROLE)) FIELD("way", TEXT) FIELD("csrf", TEXT))},
    {"Provider", FIELDS(FIRST("issuer", TEXT_OR_NULL))},
    {"SignIn", STRICT(REQUIRED("\"user\",\"password\""), FIRST("user", TEXT) FIELD("password", TEXT))},
    {"TokenSignIn", STRICT(REQUIRED("\"user\",\"password\""), FIRST("user", TEXT) FIELD("password", TEXT) FIELD("days", WHOLE_OR_NULL(1, 365)))},
    {"PasswordChange", STRICT(REQUIRED("\"new\""), FIRST("old", TEXT) FIELD("new", PASSWORD))},
    {"UserRequest", STRICT(REQUIRED("\"name\""), FIRST("name", NAME) FIELD("role", ROLE_OR_NONE) FIELD("password", PASSWORD))},
    {"UserChange", STRICT("", FIRST("role", ROLE_OR_NONE) FIELD("password", PASSWORD) FIELD("disabled", BOOLEAN))},
    {"User", FIELDS(FIRST("name", TEXT) FIELD("role", ROLE_OR_NONE) FIELD("password", BOOLEAN) FIELD("disabled", BOOLEAN)
        FIELD("created_at", TIME))},
    {"UserList", FIELDS(FIRST("items", LIST(REF("User"))))},
    {"AuditEntry", FIELDS(FIRST("seq", INTEGER) FIELD("time", TIME) FIELD("user", TEXT) FIELD("way", TEXT)
        FIELD("method", TEXT) FIELD("path", TEXT) FIELD("status", INTEGER) FIELD("request_id", TEXT) FIELD("hash", TEXT_OR_NULL))},
    {"AuditList", FIELDS(FIRST("items", LIST(REF("AuditEntry"))) FIELD("next_cursor", TEXT_OR_NULL))},
    {"LoginLink", FIELDS(FIRST("url", TEXT))},
    {"JobSpec", "{\"type\":\"object\",\"additionalProperties\":false,\"minProperties\":1,\"properties\":{"
        FIRST("version", "{\"const\":1}") FIELD("name", TEXT) FIELD("project", TEXT) FIELD("queue", TEXT)
        FIELD("notes", TEXT) FIELD("tags", LIST(TEXT))
        FIELD("after", LIST("{\"type\":[\"integer\",\"string\"]}"))
        FIELD("priority", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":100}") FIELD("seed", INTEGER)
        FIELD("example", TEXT) FIELD("model", OBJECT) FIELD("data", OBJECT) FIELD("train", OBJECT)
        FIELD("command", LIST(TEXT)) FIELD("cluster", STRICT("", FIRST("idle_seconds", WHOLE_OR_NULL(1, 2592000)))) FIELD("env", MAP(TEXT)) FIELD("secrets", MAP("{\"enum\":[\"file\",\"env\"]}"))
        FIELD("files", MAP(TEXT)) FIELD("workdir", TEXT)
        FIELD("tasks", OBJECT) FIELD("strategy", OBJECT) FIELD("placement", OBJECT) FIELD("checkpoint", OBJECT)
        FIELD("restart", OBJECT) FIELD("stop", OBJECT) FIELD("trace", OBJECT) FIELD("array", MAP(LIST("{}"))) "}}"},
    {"Job", FIELDS(FIRST("id", TEXT) FIELD("number", INTEGER) FIELD("name", TEXT) FIELD("project", TEXT)
        FIELD("queue", TEXT) FIELD("priority", INTEGER) FIELD("user", TEXT) FIELD("state", STATE)
        FIELD("reason", TEXT_OR_NULL) FIELD("code", TEXT_OR_NULL) FIELD("created_at", TIME)
        FIELD("started_at", TIME) FIELD("ended_at", TIME) FIELD("attempt", INTEGER) FIELD("restarts", INTEGER)
        FIELD("restart_max", INTEGER) FIELD("preemptions", INTEGER) FIELD("step", INTEGER_OR_NULL) FIELD("steps", INTEGER_OR_NULL)
        FIELD("last", MAP(VALUE)) FIELD("nodes", LIST(TEXT)) FIELD("program", TEXT_OR_NULL) FIELD("cluster", BOOLEAN) FIELD("tags", LIST(TEXT))
        FIELD("after", LIST(INTEGER)) FIELD("paused", BOOLEAN) FIELD("archived", BOOLEAN)
        FIELD("array", INTEGER_OR_NULL) FIELD("array_index", INTEGER_OR_NULL)
        FIELD("parameters", "{\"type\":[\"object\",\"null\"]}"))},
    {"Array", FIELDS(FIRST("array", INTEGER) FIELD("name", TEXT) FIELD("count", INTEGER) FIELD("states", MAP(INTEGER)))},
    {"ArrayEnd", FIELDS(FIRST("array", INTEGER) FIELD("count", INTEGER) FIELD("told", INTEGER))},
    {"JobList", FIELDS(FIRST("items", LIST(REF("Job"))) FIELD("next_cursor", TEXT_OR_NULL) FIELD("total", INTEGER))},
    {"JobState", FIELDS(FIRST("id", TEXT) FIELD("number", INTEGER) FIELD("state", STATE) FIELD("paused", BOOLEAN))},
    {"Tunnel", FIELDS(FIRST("number", INTEGER) FIELD("tasks", LIST(FIELDS(FIRST("role", TEXT) FIELD("index", INTEGER) FIELD("address", TEXT))))
        FIELD("server_name", TEXT) FIELD("authority", TEXT) FIELD("certificate", TEXT) FIELD("key", TEXT)
        FIELD("expires_at", TIME) FIELD("idle_seconds", INTEGER))},
    {"Explanation", FIELDS(FIRST("code", TEXT) FIELD("text", TEXT) FIELD("blockers", LIST(OBJECT))
        FIELD("suggestions", LIST(TEXT)) FIELD("resource", TEXT) FIELD("role", TEXT) FIELD("needed", INTEGER)
        FIELD("best_free", INTEGER) FIELD("largest", INTEGER) FIELD("nodes", INTEGER) FIELD("ahead", INTEGER)
        FIELD("starts_in_seconds", NUMBER_OR_NULL) FIELD("starts_on", TEXT_OR_NULL) FIELD("changes", LIST(REF("Change"))))},
    {"Change", FIELDS(FIRST("text", TEXT) FIELD("field", TEXT) FIELD("from", ANY) FIELD("to", ANY)
        FIELD("starts_in_seconds", NUMBER))},
    {"PlanRequest", STRICT(SOME, FIRST("spec", REF("JobSpec")) FIELD("nodes", LIST(REF("PlanNode"))))},
    {"PlanNode", STRICT(REQUIRED("\"name\""), FIRST("name", TEXT) FIELD("remove", BOOLEAN) FIELD("drain", BOOLEAN) FIELD("count", INTEGER)
        FIELD("cpus", NUMBER) FIELD("memory_bytes", INTEGER) FIELD("gpus", INTEGER) FIELD("gpu_type", TEXT)
        FIELD("gpu_memory_bytes", INTEGER) FIELD("labels", MAP(TEXT)))},
    {"PlanMove", FIELDS(FIRST("job", INTEGER) FIELD("before_seconds", NUMBER_OR_NULL)
        FIELD("after_seconds", NUMBER_OR_NULL) FIELD("text", TEXT))},
    {"Plan", FIELDS(FIRST("text", TEXT) FIELD("starts_now", BOOLEAN) FIELD("starts_in_seconds", NUMBER_OR_NULL)
        FIELD("code", TEXT) FIELD("why", TEXT) FIELD("placement", LIST(FIELDS(FIRST("task", TEXT)
        FIELD("node", TEXT) FIELD("gpu_indexes", LIST(INTEGER))))) FIELD("delayed", LIST(REF("PlanMove")))
        FIELD("sooner", LIST(REF("PlanMove"))) FIELD("stopped", LIST(REF("PlanMove"))) FIELD("looked_seconds", NUMBER_OR_NULL)
        FIELD("name", TEXT) FIELD("tasks", INTEGER) FIELD("needs", LIST(OBJECT)) FIELD("parameters", INTEGER)
        FIELD("layers", LIST(OBJECT)))},
    {"Event", FIELDS(FIRST("seq", INTEGER) FIELD("time", TIME) FIELD("type", TEXT) FIELD("text", TEXT)
        FIELD("state", TEXT_OR_NULL) FIELD("task", TEXT_OR_NULL) FIELD("attempt", INTEGER) FIELD("reason", TEXT))},
    {"History", FIELDS(FIRST("items", LIST(REF("Event"))) FIELD("next_after_seq", INTEGER_OR_NULL))},
    {"Task", FIELDS(FIRST("task", TEXT) FIELD("node", TEXT_OR_NULL) FIELD("state", TEXT) FIELD("pid", INTEGER)
        FIELD("started_at", TIME) FIELD("ended_at", TIME) FIELD("reason", TEXT) FIELD("exit_code", INTEGER)
        FIELD("signal", INTEGER) FIELD("error", TEXT_OR_NULL) FIELD("step", INTEGER_OR_NULL)
        FIELD("cpus", NUMBER) FIELD("memory_bytes", INTEGER) FIELD("gpus", NUMBER)
        FIELD("gpu_indexes", LIST(INTEGER)) FIELD("epoch", INTEGER) FIELD("away", BOOLEAN))},
    {"Attempt", FIELDS(FIRST("attempt", INTEGER) FIELD("epoch", INTEGER) FIELD("created_at", TIME)
        FIELD("started_at", TIME) FIELD("ended_at", TIME) FIELD("reason", TEXT) FIELD("text", TEXT_OR_NULL)
        FIELD("tasks", LIST(REF("Task"))))},
    {"TaskList", FIELDS(FIRST("attempt", INTEGER) FIELD("items", LIST(REF("Task"))))},
    {"StreamTicket", FIELDS(FIRST("ticket", TEXT) FIELD("seconds", INTEGER))},
    {"AttemptList", FIELDS(FIRST("items", LIST(REF("Attempt"))))},
    {"Checkpoint", FIELDS(FIRST("step", INTEGER) FIELD("epoch", INTEGER) FIELD("time", TIME) FIELD("path", TEXT)
        FIELD("files", LIST(FIELDS(FIRST("path", TEXT) FIELD("size", INTEGER)))))},
    {"CheckpointList", FIELDS(FIRST("items", LIST(REF("Checkpoint"))))},
    {"File", FIELDS(FIRST("sha256", TEXT) FIELD("size", INTEGER))},
    {"DatasetFile", FIELDS(FIRST("path", TEXT) FIELD("size", INTEGER) FIELD("sha256", TEXT))},
    {"Dataset", FIELDS(FIRST("name", TEXT) FIELD("state", "{\"enum\":[\"ready\",\"uploading\",\"damaged\"]}")
        FIELD("format", TEXT) FIELD("train", INTEGER) FIELD("validation", INTEGER) FIELD("test", INTEGER)
        FIELD("size", INTEGER) FIELD("files_count", INTEGER) FIELD("added_by", TEXT_OR_NULL) FIELD("added_at", TIME)
        FIELD("error", TEXT) FIELD("columns", LIST(FIELDS(FIRST("name", TEXT) FIELD("role", TEXT) FIELD("dtype", TEXT)
        FIELD("shape", LIST(INTEGER)) FIELD("classes", INTEGER)))) FIELD("files", LIST(REF("DatasetFile"))))},
    {"DatasetList", FIELDS(FIRST("items", LIST(REF("Dataset"))))},
    {"DatasetRequest", STRICT("", FIRST("files", "{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$\"},\"additionalProperties\":" SHA256 "}"))},
    {"Artifact", FIELDS(FIRST("task", TEXT) FIELD("path", TEXT) FIELD("size", INTEGER) FIELD("modified_at", TIME))},
    {"ArtifactList", FIELDS(FIRST("items", LIST(REF("Artifact"))))},
    {"Series", FIELDS(FIRST("name", TEXT) FIELD("task", TEXT) FIELD("steps", LIST(INTEGER))
        FIELD("values", LIST(VALUE)) FIELD("min", LIST(VALUE)) FIELD("max", LIST(VALUE))
        FIELD("times", LIST(NUMBER)))},
    {"Metrics", FIELDS(FIRST("seq", INTEGER) FIELD("series", LIST(REF("Series"))))},
    {"Points", STRICT(REQUIRED("\"points\""), FIRST("points", LIST(STRICT(REQUIRED("\"step\",\"values\""),
        FIRST("task", "{\"type\":\"string\",\"pattern\":\"^(worker|ps|chief|evaluator)/[0-9]{1,2}$\"}")
        FIELD("step", WHOLE(0, 9007199254740991)) FIELD("wall", "{\"type\":\"number\",\"minimum\":0,\"maximum\":100000000000}")
        FIELD("values", "{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^[A-Za-z0-9_./ -]{1,100}$\"},\"additionalProperties\":"
        "{\"anyOf\":[{\"type\":\"number\"},{\"enum\":[\"NaN\",\"Infinity\",\"-Infinity\"]}]}}"))))
        FIELD("attempt", WHOLE_OR_NULL(1, 2147483647)))},
    {"PointsStored", FIELDS(FIRST("stored", INTEGER) FIELD("seq", INTEGER))},
    {"LogLine", FIELDS(FIRST("task", TEXT) FIELD("stream", TEXT) FIELD("text", TEXT))},
    {"Logs", FIELDS(FIRST("seq", INTEGER) FIELD("items", LIST(REF("LogLine"))) FIELD("logs", LIST(OBJECT)))},
    {"GraphNode", FIELDS(FIRST("name", TEXT) FIELD("op", TEXT) FIELD("device", TEXT) FIELD("inputs", LIST(TEXT))
        FIELD("shapes", LIST(TEXT)) FIELD("attrs", MAP(TEXT)))},
    {"Graph", FIELDS(FIRST("nodes", LIST(REF("GraphNode"))))},
    {"Placed", FIELDS(FIRST("node", TEXT) FIELD("op", TEXT) FIELD("device", TEXT) FIELD("requested", TEXT)
        FIELD("reason", TEXT) FIELD("candidates", LIST(OBJECT)) FIELD("stands_for", LIST(TEXT)))},
    {"StepTimes", FIELDS(FIRST("step", INTEGER) FIELD("steps", INTEGER) FIELD("us", NUMBER) FIELD("input_us", NUMBER)
        FIELD("tasks", LIST(FIELDS(FIRST("task", TEXT) FIELD("us", NUMBER) FIELD("wait_us", NUMBER)
        FIELD("receive_us", NUMBER) FIELD("send_us", NUMBER)
        FIELD("from", LIST(FIELDS(FIRST("task", TEXT) FIELD("wait_us", NUMBER) FIELD("receive_us", NUMBER) FIELD("bytes", NUMBER) FIELD("tensors", NUMBER)))))))
        FIELD("arrivals", LIST(FIELDS(FIRST("task", TEXT) FIELD("us", NUMBER) FIELD("max_us", NUMBER) FIELD("input_us", NUMBER) FIELD("others_us", NUMBER) FIELD("recent_us", LIST(NUMBER))))))},
    {"Placement", FIELDS(FIRST("items", LIST(REF("Placed"))))},
    {"Node", FIELDS(FIRST("id", INTEGER) FIELD("name", TEXT) FIELD("state", TEXT) FIELD("cpus", NUMBER)
        FIELD("cpus_used", NUMBER) FIELD("memory_bytes", INTEGER) FIELD("memory_bytes_used", INTEGER)
        FIELD("gpus", INTEGER) FIELD("gpus_used", INTEGER) FIELD("gpu_type", TEXT_OR_NULL) FIELD("tasks", INTEGER)
        FIELD("version", TEXT) FIELD("labels", MAP(TEXT)) FIELD("joined_at", TIME) FIELD("last_seen_at", TIME))},
    {"NodeList", FIELDS(FIRST("items", LIST(REF("Node"))))},
    {"NodeDrain", FIELDS(FIRST("name", TEXT) FIELD("draining", BOOLEAN))},
    {"Queue", FIELDS(FIRST("name", TEXT) FIELD("priority", INTEGER) FIELD("weight", INTEGER)
        FIELD("preempt", BOOLEAN))},
    {"QueueRequest", STRICT("", FIRST("priority", WHOLE_OR_NULL(0, 100)) FIELD("weight", WHOLE_OR_NULL(1, 1000)) FIELD("preempt", BOOLEAN_OR_NULL))},
    {"Scheduler", FIELDS(FIRST("passes", INTEGER) FIELD("seconds", NUMBER) FIELD("longest", LIST(FIELDS(FIRST("at", TIME) FIELD("seconds", NUMBER)
        FIELD("decide_seconds", NUMBER) FIELD("store_seconds", NUMBER) FIELD("messages", INTEGER) FIELD("decisions", INTEGER) FIELD("nodes", INTEGER)))))},
    {"QueueList", FIELDS(FIRST("items", LIST(REF("Queue"))))},
    {"ProjectRequest", STRICT("", FIRST("weight", WHOLE_OR_NULL(1, 1000)) FIELD("quota", STRICT_OR_NULL(FIRST("cpus", BOUND)
        FIELD("memory_bytes", WHOLE_OR_NULL(0, 1152921504606846976)) FIELD("gpus", BOUND) FIELD("jobs", WHOLE_OR_NULL(0, 1000000000)))))},
    {"Project", FIELDS(FIRST("name", TEXT) FIELD("weight", INTEGER) FIELD("quota", OBJECT)
        FIELD("cpu_seconds", NUMBER) FIELD("gpu_seconds", NUMBER))},
    {"ProjectList", FIELDS(FIRST("items", LIST(REF("Project"))))},
    {"MemberRequest", STRICT(REQUIRED("\"role\""), FIRST("role", ROLE))},
    {"Member", FIELDS(FIRST("project", TEXT) FIELD("user", TEXT) FIELD("role", ROLE))},
    {"MemberList", FIELDS(FIRST("items", LIST(REF("Member"))))},
    {"TokenRequest", STRICT("", FIRST("name", "{\"type\":[\"string\",\"null\"]}") FIELD("kind", "{\"enum\":[\"api\",\"join\",null]}") FIELD("role", "{\"enum\":[\"viewer\",\"member\",\"admin\",null]}")
        FIELD("project", "{\"type\":[\"string\",\"null\"]}") FIELD("days", WHOLE_OR_NULL(0, 3650)))},
    {"Token", FIELDS(FIRST("token", TEXT))},
    {"TokenList", FIELDS(FIRST("items", LIST(FIELDS(FIRST("id", INTEGER) FIELD("kind", TEXT) FIELD("name", TEXT)
        FIELD("role", ROLE) FIELD("project", TEXT_OR_NULL) FIELD("created_at", TIME) FIELD("expires_at", TIME) FIELD("used_at", TIME)))))},
    {"SecretRequest", STRICT(REQUIRED("\"value\""), FIRST("value", "{\"type\":\"string\",\"minLength\":4,\"maxLength\":16384,\"pattern\":\"^[^\\\\u0000]*$\"}"))},
    {"Secret", FIELDS(FIRST("name", TEXT) FIELD("user", TEXT) FIELD("created_at", TIME) FIELD("changed_at", TIME))},
    {"WebhookRequest", STRICT(REQUIRED("\"project\",\"url\""), FIRST("project", NAME) FIELD("url", TEXT) FIELD("states", LIST(STATE)))},
    {"WebhookChange", STRICT("", FIRST("url", TEXT) FIELD("states", LIST(STATE)) FIELD("disabled", BOOLEAN))},
    {"Webhook", FIELDS(FIRST("id", INTEGER) FIELD("project", TEXT) FIELD("url", TEXT) FIELD("states", LIST(STATE))
        FIELD("disabled", BOOLEAN) FIELD("user", TEXT) FIELD("created_at", TIME) FIELD("waiting", INTEGER) FIELD("secret", TEXT))},
    {"WebhookList", FIELDS(FIRST("items", LIST(REF("Webhook"))))},
    {"Delivery", FIELDS(FIRST("id", INTEGER) FIELD("seq", INTEGER_OR_NULL) FIELD("type", TEXT)
        FIELD("state", "{\"enum\":[\"waiting\",\"delivered\",\"failed\"]}") FIELD("created_at", TIME) FIELD("tries", INTEGER)
        FIELD("next_at", TIME) FIELD("tried_at", TIME) FIELD("status", INTEGER_OR_NULL) FIELD("error", TEXT_OR_NULL))},
    {"DeliveryList", FIELDS(FIRST("items", LIST(REF("Delivery"))) FIELD("next_cursor", TEXT_OR_NULL))},
    {"SecretList", FIELDS(FIRST("items", LIST(REF("Secret"))))},
    {"Example", FIELDS(FIRST("name", TEXT) FIELD("description", TEXT) FIELD("spec", REF("JobSpec")))},
    {"ExampleList", FIELDS(FIRST("items", LIST(REF("Example"))))},
    {0},
};
/* clang-format on */
