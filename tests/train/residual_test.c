/* residual_test.c - ResNet-20 trains as TensorFlow trains it; see losses.h. */
#include "tests/train/losses.h"

TEST(residual_network_trains_as_tensorflow)
{
    check_case("resnet20", 2, 1, 1e-3);
}
