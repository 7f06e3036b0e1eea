/*
 * losses_test.c - the benchmark's cases train as TensorFlow trains them: the losses of the
 * first steps are those that tests/bench/losses.py recorded.
 */
#include "tests/train/losses.h"

TEST(softmax_regression_trains_as_tensorflow)
{
    check_case("softmax_reg", STEPS_MAX, STEPS_MAX, 0);
}

TEST(perceptron_trains_as_tensorflow)
{
    check_case("mlp", STEPS_MAX, STEPS_MAX, 0);
}

TEST(convolutional_network_trains_as_tensorflow)
{
    check_case("cnn512_adam", 4, 2, 1e-3);
}
