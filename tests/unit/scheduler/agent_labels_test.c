/* agent_labels_test.c - what may follow --labels. */

#include "base/error.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/labels.h"
#include "tests/unit/test.h"

TEST(labels_are_names_with_values)
{
    struct labels labels;
    struct error err;
    CHECK_OK(labels_parse("zone=a,disk=,x.y-z_1=b=c", &labels, &err), &err);
    CHECK_INT(labels.count, 3);
    CHECK_TEXT(labels.list[0].name, "zone");
    CHECK_TEXT(labels.list[0].value, "a");
    CHECK_TEXT(labels.list[1].value, "");
    CHECK_TEXT(labels.list[2].name, "x.y-z_1");
    CHECK_TEXT(labels.list[2].value, "b=c");
    labels_release(&labels);
    CHECK_OK(labels_parse(NULL, &labels, &err), &err);
    CHECK_INT(labels.count, 0);
    labels_release(&labels);
}

TEST(labels_that_are_none_are_refused)
{
    static const char *const bad[] = {"zone", "=a", "zone=a,", "a b=c", "zone=a,,x=y"};
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct labels labels;
        struct error err;
        CHECK(!labels_parse(bad[i], &labels, &err));
        CHECK(strstr(err.text, "no label"));
        labels_release(&labels);
    }
}

TEST(a_label_of_the_agents_own_leaves_the_operators)
{
    struct labels labels;
    struct error err;
    CHECK_OK(labels_parse("folders=mine", &labels, &err), &err);
    labels_add(&labels, "folders", "private");
    labels_add(&labels, "other", "x");
    CHECK_INT(labels.count, 2);
    CHECK_TEXT(labels.list[0].value, "mine");
    CHECK_TEXT(labels.list[1].name, "other");
    labels_release(&labels);
}
