/* mode_classes.c - see mode_classes.h. */

#include "task/mode_classes.h"

#include <stdio.h>

#include "base/str.h"
#include "runtime/dataset/augment.h"
#include "runtime/model/layer.h"
#include "runtime/model/loss.h"
#include "runtime/model/metric.h"
#include "runtime/model/optimizer.h"

int mode_classes(int argc, char **argv)
{
    static const struct {
        const char *title;
        const struct config_family *family;
    } sections[] = {
        {"Layers", &layer_family},
        {"Losses", &loss_family},
        {"Metrics", &metric_family},
        {"Optimizers", &optimizer_family},
        {"Learning rate schedules", &schedule_family},
        {"Initialisers", &build_initializer_family},
        {"Regularisers", &build_regularizer_family},
        {"Constraints", &build_constraint_family},
        {"Augmentation", &augment_family},
    };
    struct str page = {0};
    (void)argc, (void)argv;
    str_add(&page,
            "# Classes\n\nWhat a job spec can name, with Keras's arguments and defaults; "
            "those without a value are null. Made by `trainyard-task classes`.\n");
    for (int i = 0; i < ARRAY_LEN(sections); i++) {
        str_printf(&page, "\n## %s\n\n", sections[i].title);
        config_describe(sections[i].family, &page);
    }
    str_add(&page, "\n## Activations\n\n");
    for (int i = 0; build_activation_names[i]; i++)
        str_printf(&page, "%s`%s`", i ? ", " : "", build_activation_names[i]);
    str_add(&page, "\n");
    fwrite(page.data, 1, page.size, stdout);
    str_release(&page);
    return 0;
}
