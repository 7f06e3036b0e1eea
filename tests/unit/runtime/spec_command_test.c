/* spec_command_test.c - job specs with a program in place of a model, and patches of specs. */

#include "base/arena.h"
#include "base/str.h"
#include "runtime/spec/config.h"
#include "tests/unit/runtime/specs.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(spec_takes_a_patch)
{
    struct arena *arena = arena_new();
    struct error err;
    struct str text = {0};
    spec_to_json(
        parse(arena, WITH("\"train\": {\"epochs\": 3}, \"priority\": 60, \"seed\": 5")), &text);
    const char *patch = "{\"seed\": 6, \"priority\": null, \"train\": {\"steps\": 9, "
                        "\"optimizer\": {\"name\": \"SGD\", \"momentum\": 0.5}}}";
    const char *patched = spec_patch(arena, str_text(&text), patch, strlen(patch), &err);
    CHECK(patched);
    const struct spec *spec = parse(arena, patched);
    CHECK_INT(spec->seed, 6);
    CHECK_INT(spec->priority, 50);
    CHECK_INT(spec->train.steps, 9);
    CHECK_INT(spec->train.epochs, 0);
    CHECK(config_is(spec->train.optimizer, "SGD"));
    CHECK_INT(spec->layers_count, 1);
    CHECK(!spec_patch(arena, str_text(&text), "[]", 2, &err));
    CHECK(!spec_patch(arena, str_text(&text), "{", 1, &err));
    str_release(&text);
    arena_free(arena);
}

TEST(spec_of_a_command)
{
    struct arena *arena = arena_new();
    struct str text = {0};
    const struct spec *spec = parse(
        arena, "{\"command\": [\"python3\", \"/x/train.py\", \"--lr\", \"0.1\\n\"], \"env\": "
               "{\"A\": \"1\", \"B_2\": \"x y\"}, \"secrets\": {\"KEY\": \"file\", "
               "\"HF_TOKEN\": \"env\"}, \"files\": {\"a/b.txt\": \"" HASH
               "\"}, \"tasks\": {\"worker\": 3, \"ps\": {\"replicas\": 2, \"cpus\": 0.5}}, "
               "\"stop\": {\"max_seconds\": 60, \"stall_seconds\": 9}, \"restart\": {\"max\": "
               "2, \"on\": "
               "[\"user\", \"crash\"], \"exclude_bad_nodes\": true}}");
    CHECK_INT(spec->command.words_count, 4);
    CHECK_TEXT(spec->command.words[3], "0.1\n");
    CHECK_TEXT(spec->name, "train.py");
    CHECK_INT(spec->command.env_count, 2);
    CHECK_TEXT(spec->command.env[1].name, "B_2");
    CHECK_TEXT(spec->command.env[1].value, "x y");
    CHECK_INT(spec->command.secrets_count, 2);
    CHECK_TEXT(spec->command.secrets[0].name, "KEY");
    CHECK(!spec->command.secrets[0].in_env);
    CHECK_TEXT(spec->command.secrets[1].name, "HF_TOKEN");
    CHECK(spec->command.secrets[1].in_env);
    CHECK_TEXT(spec->command.files[0].path, "a/b.txt");
    CHECK_TEXT(spec->command.files[0].sha256, HASH);
    CHECK_INT(spec->tasks[ROLE_WORKER].replicas, 3);
    CHECK_INT(spec->tasks[ROLE_PS].replicas, 2);
    CHECK_INT(spec->tasks[ROLE_PS].cpu_millis, 500);
    CHECK_INT(spec->stop.max_seconds, 60);
    CHECK_INT(spec->stop.stall_seconds, 9);
    CHECK_INT(spec->restart_max, 2);
    CHECK_INT(spec->restart_on, 1 << 3 | 1 << 4); /* EXIT_USER, EXIT_CRASH */
    CHECK_INT(spec->restart_bad, 1);
    CHECK_INT(spec->layers_count, 0);

    spec_to_json(spec, &text);
    const struct spec *again = parse(arena, str_text(&text));
    struct str second = {0};
    spec_to_json(again, &second);
    CHECK_TEXT(str_text(&second), str_text(&text));
    str_release(&text);
    str_release(&second);
    CHECK_TEXT(parse(arena, "{\"command\": [\"/bin/my prog\"]}")->name, "my_prog");
    CHECK_TEXT(parse(arena, "{\"command\": [\"sh\", \"-c\", \"a.b\"]}")->name, "sh");
    CHECK_TEXT(parse(arena, "{\"command\": [\"x\"], \"workdir\": \"/w\"}")->command.workdir,
               "/w");
    arena_free(arena);
}

TEST(spec_of_a_command_refuses)
{
    static const struct {
        const char *text, *pointer, *says;
    } cases[] = {
        {"{\"command\": []}", "/command", "1 to 1000 words"},
        {"{\"command\": \"ls\"}", "/command", "\"ls\""},
        {"{\"command\": [\"ls\", 5]}", "/command/1", "a word is 5"},
        {"{\"command\": [\"\"]}", "/command/0", "not empty"},
        {"{\"command\": [\"a\"], \"env\": {\"1A\": \"x\"}}", "/env/1A", "no digit first"},
        {"{\"command\": [\"a\"], \"env\": {\"A=B\": \"x\"}}", "/env/A=B", "cannot name"},
        {"{\"command\": [\"a\"], \"env\": {\"A\": 1}}", "/env/A", "A is 1"},
        {"{\"command\": [\"a\"], \"env\": {\"TRAINYARD_OUT\": \"x\"}}", "/env/TRAINYARD_OUT",
         "the platform's own"},
        {"{\"command\": [\"a\"], \"secrets\": {\"A-B\": \"env\"}}", "/secrets/A-B",
         "no digit first"},
        {"{\"command\": [\"a\"], \"secrets\": {\"A\": \"x\"}}", "/secrets/A", "$A_FILE"},
        {"{\"command\": [\"a\"], \"secrets\": {\"A\": 5}}", "/secrets/A", "A is 5"},
        {"{\"command\": [\"a\"], \"secrets\": [\"A\"]}", "/secrets", "secrets is a list"},
        {"{\"command\": [\"a\"], \"env\": {\"A\": \"x\"}, \"secrets\": {\"A\": \"env\"}}",
         "/secrets/A", "a variable of env already"},
        {"{\"command\": [\"a\"], \"files\": {\"../x\": \"" HASH "\"}}", "/files/..~1x",
         "cannot name a file"},
        {"{\"command\": [\"a\"], \"files\": {\"x\": \"ABC\"}}", "/files/x", "64 digits"},
        {"{\"command\": [\"a\"], \"workdir\": \"here\"}", "/workdir", "whole path"},
        {"{\"command\": [\"a\"], \"workdir\": \"/w\", \"files\": {\"x\": \"" HASH "\"}}",
         "/workdir", "one of workdir"},
        {"{\"command\": [\"a\"], \"model\": {\"layers\": []}}", "/model", "belongs to a model"},
        {"{\"command\": [\"a\"], \"stop\": {\"max_steps\": 5}}", "/stop/max_steps",
         "unknown field"},
        {"{\"command\": [\"a\"], \"tasks\": {\"worker\": 0}}", "/tasks/worker", "at least 1"},
        {WITH("\"env\": {\"A\": \"b\"}"), "/env", "belongs to a \"command\""},
        {WITH("\"secrets\": {\"A\": \"env\"}"), "/secrets", "belongs to a \"command\""},
    };
    struct arena *arena = arena_new();
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err;
        CHECK(!spec_parse(arena, cases[i].text, strlen(cases[i].text), &err));
        CHECK_INT(err.code, INVALID);
        CHECK_TEXT(err.pointer, cases[i].pointer);
        if (!strstr(err.text, cases[i].says))
            CHECK_STOP("%s: %s", cases[i].text, err.text);
    }
    const char *program = "{\"command\": [\"a\"]}";
    struct error err;
    CHECK(!spec_parse_training(arena, program, strlen(program), &err));
    CHECK_TEXT(err.pointer, "/command");
    arena_free(arena);
}
