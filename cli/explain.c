/* explain.c - trainyard explain: why a job waits, or how it ended. */

#include "cli/cli.h"
#include "cli/show.h"
#include "cli/table.h"

static void print_explanation(json_t *why)
{
    size_t index;
    json_t *item;
    char duration[40];
    json_t *start = json_object_get(why, "starts_in_seconds");
    const char *node = json_string_value(json_object_get(why, "starts_on"));
    printf("%s\n", json_string_value(json_object_get(why, "text")));
    if (json_is_number(start) && json_number_value(start) > 0)
        printf("Starts in about %s%s%s, if no job of higher rank comes.\n",
               table_duration(json_number_value(start), duration, sizeof(duration)),
               node ? " on " : "", node ? node : "");
    json_array_foreach(json_object_get(why, "blockers"), index, item)
    {
        printf("  - %s\n", json_string_value(json_object_get(item, "text")));
    }
    json_array_foreach(json_object_get(why, "suggestions"), index, item)
    {
        printf("%s\n", json_string_value(item));
    }
}

int explain_main(int argc, char **argv)
{
    static const struct show show = {"explain JOB", "/api/v1/jobs/", true, "/explain",
                                     print_explanation};
    return show_answer(argc, argv, &show);
}
