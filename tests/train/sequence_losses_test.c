/* sequence_losses_test.c - the benchmark's sequence models train as Keras trains them. */
#include "tests/train/losses.h"

TEST(lstm_trains_as_keras)
{
    check_case("lstm", 2, 2, 0);
}

TEST(gpt_trains_as_keras)
{
    check_case("gpt", 4, 4, 0);
}
