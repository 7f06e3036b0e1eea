/* plan_whatif.c - what would happen, told. */

#include "server/plan_whatif.h"
#include "base/limits.h"
#include "base/str.h"
#include "scheduler/forecast.h"

#define TOLD 3 /* jobs that a sentence names */

static double seconds(uint64_t us)
{
    return (double)us / 1000000;
}

/* "45 s", "12 min", "3.5 h" */
static void add_time(struct str *text, uint64_t us)
{
    if (us < 120 * UINT64_C(1000000))
        str_printf(text, "%.0f s", seconds(us));
    else if (us < 7200 * UINT64_C(1000000))
        str_printf(text, "%.0f min", seconds(us) / 60);
    else
        str_printf(text, "%.1f h", seconds(us) / 3600);
}

/* --- JSON --- */

static json_t *start_json(uint64_t us)
{
    return us == FORECAST_NEVER ? json_null() : json_real(seconds(us));
}

static json_t *move_json(const struct whatif_move *move)
{
    struct str text = {0};
    str_printf(&text, "job %lld: ", (long long)move->job);
    if (move->before_us == FORECAST_NEVER)
        str_add(&text, "nobody knows when");
    else
        add_time(&text, move->before_us);
    str_add(&text, " to start, then ");
    if (move->after_us == FORECAST_NEVER)
        str_add(&text, "nobody knows when");
    else
        add_time(&text, move->after_us);
    json_t *json = json_pack("{s:I, s:o, s:o, s:s}", "job", (json_int_t)move->job,
                             "before_seconds", start_json(move->before_us), "after_seconds",
                             start_json(move->after_us), "text", str_text(&text));
    str_release(&text);
    return json;
}

static json_t *moves_json(const struct whatif_move *moves, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count && i < LIMIT_PAGE_ITEMS; i++)
        json_array_append_new(list, move_json(&moves[i]));
    return list;
}

static json_t *place_json(const struct whatif_place *place)
{
    json_t *indexes = json_array();
    for (int g = 0; g < SCHEDULER_GPUS_MAX; g++)
        if (place->gpu_mask >> g & 1)
            json_array_append_new(indexes, json_integer(g));
    return json_pack("{s:o, s:s, s:o}", "task",
                     json_sprintf("%s/%d", place->role, place->index), "node", place->node,
                     "gpu_indexes", indexes);
}

void plan_whatif_json(const struct whatif *what, json_t *json)
{
    if (what->has_job) {
        bool now = what->starts && !what->start_us;
        json_t *places = json_array();
        for (int i = 0; i < what->places_count; i++)
            json_array_append_new(places, place_json(&what->places[i]));
        json_object_set_new(json, "starts_now", json_boolean(now));
        json_object_set_new(json, "starts_in_seconds",
                            what->starts ? json_real(seconds(what->start_us)) : json_null());
        json_object_set_new(json, "placement", places);
        if (!now) {
            json_object_set_new(json, "code", json_string(explain_code_name(what->why.code)));
            json_object_set_new(json, "why", json_string(what->why.text));
        }
    }
    json_object_set_new(json, "delayed", moves_json(what->delayed, what->delayed_count));
    json_object_set_new(json, "sooner", moves_json(what->sooner, what->sooner_count));
    json_object_set_new(json, "stopped", moves_json(what->stopped, what->stopped_count));
    json_object_set_new(json, "looked_seconds",
                        what->complete ? json_null() : json_real(seconds(what->until_us)));
}

/* --- for people --- */

static void add_places(const struct whatif *what, struct str *text)
{
    int others = 0;
    for (int i = 1; i < what->places_count; i++) {
        bool seen = false;
        for (int j = 0; j < i && !seen; j++)
            seen = strcmp(what->places[j].node, what->places[i].node) == 0;
        others += !seen;
    }
    str_printf(text, " on %s", what->places[0].node);
    if (others)
        str_printf(text, " and %d more node%s", others, others == 1 ? "" : "s");
}

/* " would delay job 7 and 3 more." */
static void add_moves(const char *would, const char *then, const struct whatif_move *moves,
                      int count, struct str *text)
{
    if (!count)
        return;
    str_printf(text, " %s job", would);
    for (int i = 0; i < count && i < TOLD; i++)
        str_printf(text, "%s %lld", i ? "," : "", (long long)moves[i].job);
    if (count > TOLD)
        str_printf(text, " and %d more", count - TOLD);
    str_printf(text, "%s.", then);
}

void plan_whatif_text(const struct whatif *what, struct str *text)
{
    if (what->has_job && what->starts && !what->start_us) {
        str_add(text, "would start now");
        add_places(what, text);
        str_add(text, ".");
    } else if (what->has_job && what->starts) {
        str_add(text, "would start in about ");
        add_time(text, what->start_us);
        add_places(what, text);
        str_printf(text, ". %s", what->why.text);
    } else if (what->has_job) {
        str_printf(text, "would wait, nobody knows how long. %s", what->why.text);
    }
    add_moves("Would stop", ", to wait again", what->stopped, what->stopped_count, text);
    add_moves("Would delay", "", what->delayed, what->delayed_count, text);
    add_moves("Would let", " start sooner", what->sooner, what->sooner_count, text);
}
