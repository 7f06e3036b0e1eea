/*
 * reader.c - one turn at a reader after the other.
 *
 * DESIGN.  A turn is an attempt at the reader's counter: it ends when it is its turn, and from
 * then on what it does is the reader's alone (`busy`), without the lock.  A turn that needs a
 * file name leaves its thread and goes on where the queue ends its attempt.  Turns that follow
 * each other run in a loop, not in each other.
 */

#include "kernels/io/reader.h"

#include "base/alloc.h"
#include "base/str.h"
#include "kernels/io/reader_state.h"
#include "runtime/attempt.h"

struct turn;

struct reader {
    struct resource resource; /* first */
    struct counter counter;   /* guards: turns, busy, and changes of the counts in `state` */
    struct reader_spec spec;
    char *name;
    struct attempt_list turns;
    bool busy;

    /* Of whose turn it is: */
    struct turn *current; /* set while the loop looks for the next turn */
    bool looping;
    struct reader_state state;
    void *file; /* NULL: none is open */
};

enum turn_kind { TURN_READ, TURN_RESET, TURN_SAVE, TURN_RESTORE };

struct record {
    struct str key, value;
};

struct turn {
    struct attempt attempt; /* first */
    enum turn_kind kind;
    struct reader *reader; /* counted */
    struct queue *queue;   /* counted; of TURN_READ */
    struct cancel *cancel;
    int64_t wanted; /* records; negative: to the end of the file */
    struct record *records;
    int records_count, records_capacity;
    struct str saved; /* of TURN_SAVE; of TURN_RESTORE what to read */
    char *path;       /* taken from the queue, owned; NULL if that failed */
    int met;          /* __atomic: who starts the queue's attempt, and who ends it */
    reader_ended *ended;
    void *arg;
};

static void run_turns(struct reader *reader, struct turn *turn);

/* --- files --- */

static bool in_progress(const struct reader *reader)
{
    return reader->state.finished < reader->state.started;
}

static void close_file(struct reader *reader)
{
    if (reader->file)
        reader->spec.format->close(reader->file);
    reader->file = NULL;
}

static bool open_file(struct reader *reader, struct turn *turn)
{
    struct error err;
    const struct reader_format *format = reader->spec.format;
    free(reader->state.path);
    reader->state.path = turn->path;
    turn->path = NULL;
    if (format->open &&
        !(reader->file = format->open(&reader->spec, reader->state.path, &err))) {
        attempt_fail(&turn->attempt, err.code, "%s", err.text);
        return false;
    }
    pthread_mutex_lock(&reader->counter.lock);
    reader->state.started++;
    pthread_mutex_unlock(&reader->counter.lock);
    return true;
}

/* The next record of the file; true once the turn has what it wants, or failed. */
static bool read_record(struct reader *reader, struct turn *turn)
{
    struct error err;
    bool produced = false, at_end = false;
    struct record record = {0};
    bool ok = reader->spec.format->next(reader->file, reader->state.path, &record.key,
                                        &record.value, &produced, &at_end, &err);
    if (!ok)
        attempt_fail(&turn->attempt, err.code, "%s", err.text);
    if (ok && produced) {
        turn->records = alloc_grow(turn->records, turn->records_count, &turn->records_capacity,
                                   sizeof(*turn->records));
        turn->records[turn->records_count++] = record;
    } else {
        str_release(&record.key);
        str_release(&record.value);
    }
    pthread_mutex_lock(&reader->counter.lock);
    reader->state.records += ok && produced;
    if (ok && at_end)
        reader->state.finished = reader->state.started;
    pthread_mutex_unlock(&reader->counter.lock);
    if (ok && at_end)
        close_file(reader);
    return !ok || turn->records_count == turn->wanted || (at_end && turn->records_count);
}

/* --- names of files --- */

/* The second of the two that meet here goes on with the turn. */
static bool is_second(struct turn *turn)
{
    return __atomic_fetch_add(&turn->met, 1, __ATOMIC_ACQ_REL) == 1;
}

static void got_name(void *arg, struct tensor *tuple, const struct error *err)
{
    struct turn *turn = arg;
    if (err) {
        attempt_fail(&turn->attempt, err->code, "%s", err->text);
    } else if (tuple[0].count != 1) {
        attempt_fail(&turn->attempt, INVALID,
                     "Expected to dequeue a one-element string tensor");
    } else {
        const struct tensor_string *name = tensor_strings(&tuple[0]);
        turn->path = alloc_text_n(name->size ? name->data : "", name->size);
    }
    if (is_second(turn))
        run_turns(turn->reader, turn);
}

/* --- turns --- */

/* Reads on; false: the turn goes on when the queue gives a name. */
static bool read_turn(struct reader *reader, struct turn *turn)
{
    while (!turn->attempt.failure && turn->wanted) {
        if (in_progress(reader)) {
            if (read_record(reader, turn))
                return true;
        } else if (turn->path) {
            open_file(reader, turn);
        } else {
            turn->met = 0;
            kernel_queue_take(turn->queue, turn->cancel, got_name, turn);
            if (!is_second(turn))
                return false;
        }
    }
    return true;
}

static void reset(struct reader *reader)
{
    close_file(reader);
    free(reader->state.path);
    pthread_mutex_lock(&reader->counter.lock);
    reader->state = (struct reader_state){0};
    pthread_mutex_unlock(&reader->counter.lock);
}

static void restore(struct reader *reader, struct turn *turn)
{
    struct error err;
    struct reader_state state = {0};
    if (!kernel_reader_state_read(&state, turn->saved.data, turn->saved.size, reader->name,
                                  &err)) {
        attempt_fail(&turn->attempt, err.code, "%s", err.text);
        return;
    }
    reset(reader);
    pthread_mutex_lock(&reader->counter.lock);
    reader->state = state;
    pthread_mutex_unlock(&reader->counter.lock);
}

/* Does what the turn is about; false: it goes on elsewhere, and must not be touched. */
static bool do_turn(struct reader *reader, struct turn *turn)
{
    if (turn->attempt.failure) /* from where it waited */
        return true;
    switch (turn->kind) {
    case TURN_READ:
        return read_turn(reader, turn);
    case TURN_RESET:
        reset(reader);
        return true;
    case TURN_SAVE:
    case TURN_RESTORE:
        if (!reader->spec.format->has_state)
            attempt_fail(&turn->attempt, UNIMPLEMENTED, "Reader %s",
                         turn->kind == TURN_SAVE ? "SerializeState" : "RestoreState");
        else if (turn->kind == TURN_SAVE)
            kernel_reader_state_write(&reader->state, &turn->saved);
        else
            restore(reader, turn);
        return true;
    }
    return true;
}

/* --- ends of turns --- */

static void free_turn(struct turn *turn)
{
    for (int i = 0; i < turn->records_count; i++) {
        str_release(&turn->records[i].key);
        str_release(&turn->records[i].value);
    }
    free(turn->records);
    str_release(&turn->saved);
    free(turn->path);
    attempt_release(&turn->attempt);
    if (turn->queue)
        resource_unref(kernel_queue_resource(turn->queue));
    resource_unref(&turn->reader->resource);
    free(turn);
}

static bool make_results(struct turn *turn, struct tensor *keys, struct tensor *values,
                         struct error *err)
{
    if (turn->kind == TURN_SAVE)
        return tensor_init_string(values, turn->saved.data, turn->saved.size, err);
    struct shape shape = SHAPE(turn->records_count);
    if (!tensor_init(keys, STRING, &shape, err) || !tensor_init(values, STRING, &shape, err))
        return false;
    for (int i = 0; i < turn->records_count; i++) {
        const struct record *record = &turn->records[i];
        tensor_set_string(keys, i, record->key.data, record->key.size);
        tensor_set_string(values, i, record->value.data, record->value.size);
    }
    return true;
}

/* Tells the end; the reader may be another's by now. */
static void end_turn(struct turn *turn)
{
    struct error err;
    struct tensor keys = {0}, values = {0};
    if (!turn->attempt.failure && !make_results(turn, &keys, &values, &err))
        attempt_fail(&turn->attempt, err.code, "%s", err.text);
    bool ok = !turn->attempt.failure;
    turn->ended(turn->arg, ok ? &keys : NULL, ok ? &values : NULL, turn->attempt.failure);
    tensor_release(&keys);
    tensor_release(&values);
    free_turn(turn);
}

/* Whose turn is next; NULL: the reader is free. */
static struct turn *next_turn(struct reader *reader)
{
    struct attempt_list ended = {0};
    reader->current = NULL;
    pthread_mutex_lock(&reader->counter.lock);
    if (reader->turns.first)
        attempt_end_locked(reader->turns.first, &ended);
    else
        reader->busy = reader->looping = false;
    pthread_mutex_unlock(&reader->counter.lock);
    if (!ended.first)
        return NULL;
    attempt_finish(&ended); /* which sets `current` */
    return reader->current;
}

static void run_turns(struct reader *reader, struct turn *turn)
{
    resource_ref(&reader->resource);
    while (turn && do_turn(reader, turn)) {
        struct turn *over = turn;
        turn = next_turn(reader);
        end_turn(over);
    }
    resource_unref(&reader->resource);
}

/* The attempt has ended: it is its turn, or it was cancelled while it waited. */
static void begin_turn(struct attempt *attempt)
{
    struct turn *turn = (struct turn *)attempt;
    struct reader *reader = turn->reader;
    attempt->cancel = NULL;
    if (attempt->failure) {
        end_turn(turn);
    } else if (reader->looping) {
        reader->current = turn;
    } else {
        reader->looping = true;
        run_turns(reader, turn);
    }
}

static void serve_locked(struct counter *counter, struct attempt_list *ended)
{
    struct reader *reader =
        (struct reader *)((char *)counter - offsetof(struct reader, counter));
    if (reader->busy || !reader->turns.first)
        return;
    reader->busy = true;
    attempt_end_locked(reader->turns.first, ended);
}

/* --- asking --- */

static struct turn *turn_new(struct reader *reader, enum turn_kind kind, struct cancel *cancel,
                             reader_ended *ended, void *arg)
{
    struct turn *turn = alloc_bytes(sizeof(*turn));
    turn->attempt.what = "Read";
    turn->attempt.done = begin_turn;
    turn->kind = kind;
    turn->reader = reader;
    turn->cancel = cancel;
    turn->ended = ended;
    turn->arg = arg;
    resource_ref(&reader->resource);
    return turn;
}

static void wait_for_turn(struct turn *turn)
{
    struct reader *reader = turn->reader;
    attempt_begin(&turn->attempt, &reader->counter, &reader->turns, turn->cancel);
}

void kernel_reader_ask_read(struct reader *reader, struct queue *queue, int64_t count,
                            struct cancel *cancel, reader_ended *ended, void *arg)
{
    struct turn *turn = turn_new(reader, TURN_READ, cancel, ended, arg);
    resource_ref(kernel_queue_resource(queue));
    turn->queue = queue;
    turn->wanted = count;
    wait_for_turn(turn);
}

void kernel_reader_ask_reset(struct reader *reader, struct cancel *cancel, reader_ended *ended,
                             void *arg)
{
    wait_for_turn(turn_new(reader, TURN_RESET, cancel, ended, arg));
}

void kernel_reader_ask_save(struct reader *reader, struct cancel *cancel, reader_ended *ended,
                            void *arg)
{
    wait_for_turn(turn_new(reader, TURN_SAVE, cancel, ended, arg));
}

void kernel_reader_ask_restore(struct reader *reader, const void *state, size_t size,
                               struct cancel *cancel, reader_ended *ended, void *arg)
{
    struct turn *turn = turn_new(reader, TURN_RESTORE, cancel, ended, arg);
    str_add_bytes(&turn->saved, state, size);
    wait_for_turn(turn);
}

int64_t kernel_reader_records(struct reader *reader)
{
    pthread_mutex_lock(&reader->counter.lock);
    int64_t count = reader->state.records;
    pthread_mutex_unlock(&reader->counter.lock);
    return count;
}

int64_t kernel_reader_units(struct reader *reader)
{
    pthread_mutex_lock(&reader->counter.lock);
    int64_t count = reader->state.finished;
    pthread_mutex_unlock(&reader->counter.lock);
    return count;
}

/* --- life --- */

static void destroy(struct resource *resource)
{
    struct reader *reader = (struct reader *)resource;
    assert(!reader->busy);
    close_file(reader);
    free(reader->state.path);
    attempt_counter_release(&reader->counter);
    free(reader->name);
    free(reader);
}

struct reader *kernel_reader_new(const struct reader_spec *spec, const char *name)
{
    struct reader *reader = alloc_bytes(sizeof(*reader));
    reader->resource =
        (struct resource){.kind = READER_KIND, .references = 1, .destroy = destroy};
    attempt_counter_init(&reader->counter, serve_locked);
    reader->spec = *spec;
    reader->name = alloc_printf("%s '%s'", spec->format->name, name);
    return reader;
}

struct resource *kernel_reader_resource(struct reader *reader)
{
    return &reader->resource;
}
