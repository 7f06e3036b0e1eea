/* program.c - from a spec's command to what an agent needs. */

#include "server/program.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "db/jobs.h"
#include "db/secrets.h"
#include "runtime/spec/spec.h"
#include "server/store.h"

/* --- the program --- */

static bool is_plain(const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-";
    return *word && word[strspn(word, plain)] == '\0';
}

const char *program_text(const struct spec *spec, struct arena *arena)
{
    struct str text = {0};
    for (int i = 0; i < spec->command.words_count && text.size < PROGRAM_TEXT_BYTES; i++) {
        const char *word = spec->command.words[i];
        str_add(&text, i ? " " : "");
        if (is_plain(word)) {
            str_add(&text, word);
            continue;
        }
        str_add_char(&text, '\'');
        for (const char *c = word; *c && text.size < PROGRAM_TEXT_BYTES; c++) {
            if (*c == '\'')
                str_add(&text, "'\\''");
            else
                str_add_char(&text, *c);
        }
        str_add_char(&text, '\'');
    }
    if (text.size > PROGRAM_TEXT_BYTES) {
        size_t size = PROGRAM_TEXT_BYTES - 3;
        while (size && ((unsigned char)text.data[size] & 0xc0) == 0x80)
            size--; /* not within a character */
        text.data[text.size = size] = '\0';
        str_add(&text, "...");
    }
    const char *out = arena_text(arena, str_text(&text));
    str_release(&text);
    return out;
}

static const struct agent_variable *variables(const struct spec_variable *from, int count,
                                              struct arena *arena)
{
    struct agent_variable *to = arena_array(arena, (size_t)count + 1, sizeof(*to));
    for (int i = 0; i < count; i++)
        to[i] = (struct agent_variable){from[i].name, from[i].value};
    return to;
}

/* The values, as they are now; what cannot be read is the program's problem. */
static const struct agent_secret *secrets(const struct db *db, struct db_conn *conn,
                                          const struct spec_command *command,
                                          struct arena *arena, const char **problem)
{
    struct error err;
    struct agent_secret *to =
        arena_array(arena, (size_t)command->secrets_count + 1, sizeof(*to));
    for (int i = 0; i < command->secrets_count; i++) {
        const struct spec_secret *from = &command->secrets[i];
        to[i] = (struct agent_secret){from->name, "", from->in_env};
        if (!db_secrets_read(db, conn, from->name, arena, &to[i].value, &err))
            *problem = arena_text(arena, err.text);
    }
    return to;
}

bool program_read(const struct db *db, struct db_conn *conn, const char *spec, int tasks,
                  struct arena *arena, struct agent_program *program, struct error *err)
{
    const struct spec *parsed = spec_parse(arena, spec, strlen(spec), err);
    if (!parsed)
        return error_prefix(err, "the stored spec: ");
    const struct spec_command *command = &parsed->command;
    struct agent_file *files =
        arena_array(arena, (size_t)command->files_count + 1, sizeof(*files));
    for (int i = 0; i < command->files_count; i++)
        files[i] = (struct agent_file){command->files[i].path, command->files[i].sha256};
    const char *problem = "";
    const struct agent_secret *values = secrets(db, conn, command, arena, &problem);
    *program = (struct agent_program){
        .words = command->words,
        .words_count = command->words_count,
        .variables = variables(command->env, command->env_count, arena),
        .variables_count = command->env_count,
        .secrets = values,
        .secrets_count = *problem ? 0 : command->secrets_count,
        .files = files,
        .files_count = command->files_count,
        .folder = command->workdir ? command->workdir : "",
        .tasks = tasks,
        .problem = problem,
    };
    return true;
}

bool program_check_files(const struct spec *spec, const char *folder, struct error *err)
{
    for (int i = 0; i < spec->command.files_count; i++) {
        const struct spec_file *file = &spec->command.files[i];
        int64_t size;
        if (store_size(folder, file->sha256, &size, err))
            continue;
        if (err->code != NOT_FOUND)
            return false;
        return error_at(err, "/files", INVALID,
                        "%s has not been uploaded: PUT its bytes to /api/v1/files/%s first",
                        file->path, file->sha256);
    }
    return true;
}

bool program_check_secrets(const struct spec *spec, struct db *db, struct error *err)
{
    if (!spec->command.secrets_count)
        return true;
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    bool ok = conn != NULL;
    for (int i = 0; i < spec->command.secrets_count && ok; i++) {
        const char *name = spec->command.secrets[i].name;
        bool known;
        char pointer[LIMIT_NAME_BYTES + 16];
        snprintf(pointer, sizeof(pointer), "/secrets/%s", name);
        ok = db_secrets_known(conn, name, &known, err) &&
             (known || error_at(err, pointer, INVALID,
                                "there is no secret %s: set it with trainyard secret set %s",
                                name, name));
    }
    db_read_done(db, conn);
    return ok;
}
