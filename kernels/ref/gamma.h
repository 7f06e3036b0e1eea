/* gamma.h - the gamma distribution's functions that more than one kernel needs. */
#pragma once

/*
 * How a sample x of the gamma distribution moves with its shape a: minus the slope of the lower
 * incomplete gamma function along a, over the density.  0 where the density is below
 * `smallest`.
 */
double kernel_gamma_sample_slope(double a, double x, double smallest);
