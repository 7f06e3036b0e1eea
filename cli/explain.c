/* explain.c - trainyard explain: why a job waits, or how it ended. */

#include "cli/cli.h"
#include "cli/show.h"

static void print_explanation(json_t *why)
{
    size_t index;
    json_t *item;
    printf("%s\n", json_string_value(json_object_get(why, "text")));
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
