/* ops_test.c - the op table as a whole: every signature is well formed, every name is findable.
 */

#include "tests/unit/test.h"

#include "runtime/op.h"

TEST(every_signature_parses)
{
    CHECK(op_count() > 0);
    for (int i = 0; i < op_count(); i++) {
        const struct op *op = op_at(i);
        const struct op_signature *signature = op_signature(op);
        CHECK(op_find(op->name) == op);
        for (int a = 0; a < signature->inputs_count; a++)
            CHECK(signature->inputs[a].name[0] != 0);
    }
}

/* An op is differentiable, declared not to be, or left without a word; never two of these. */
TEST(gradients_do_not_contradict)
{
    for (int i = 0; i < op_count(); i++)
        CHECK(!(op_at(i)->gradient && op_at(i)->no_gradient));
}
