/* bessel.c - Bessel functions, incomplete gamma and beta functions, integrals with names. */

#include "runtime/ops/internal.h"

static bool times(struct gradient *g, struct edge slope)
{
    return op_gradient_single(g, op_call2(g, "Mul", g->of_outputs[0], slope));
}

static struct edge of_x(struct gradient *g, const char *op)
{
    return op_call1(g, op, gradient_x(g, 0));
}

static struct edge y_over_x(struct gradient *g)
{
    return op_call2(g, "RealDiv", gradient_y(g, 0), gradient_x(g, 0));
}

/* `slope`, but `value` where x is `at`. */
static struct edge except(struct gradient *g, double at, double value, struct edge slope)
{
    struct edge x = gradient_x(g, 0);
    struct edge there = op_call2(g, "Equal", x, op_number(g, x, at));
    return op_call3(g, "SelectV2", there, op_number(g, x, value), slope);
}

static bool i0_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, of_x(g, "BesselI1"));
}

static bool i1_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, except(g, 0, 0.5, op_call2(g, "Sub", of_x(g, "BesselI0"), y_over_x(g))));
}

static bool i0e_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge side = op_call2(g, "Mul", of_x(g, "Sign"), gradient_y(g, 0));
    return times(g, op_call2(g, "Sub", of_x(g, "BesselI1e"), side));
}

static bool i1e_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge factor = op_call2(g, "AddV2", of_x(g, "Sign"), of_x(g, "Reciprocal"));
    struct edge part = op_call2(g, "Mul", gradient_y(g, 0), factor);
    return times(g, except(g, 0, 0.5, op_call2(g, "Sub", of_x(g, "BesselI0e"), part)));
}

static bool k0_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call1(g, "Neg", of_x(g, "BesselK1")));
}

static bool k1_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call2(g, "Sub", op_call1(g, "Neg", of_x(g, "BesselK0")), y_over_x(g)));
}

static bool k0e_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call2(g, "Sub", gradient_y(g, 0), of_x(g, "BesselK1e")));
}

static bool k1e_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge one = op_number(g, gradient_x(g, 0), 1);
    struct edge factor = op_call2(g, "Sub", one, of_x(g, "Reciprocal"));
    struct edge part = op_call2(g, "Mul", gradient_y(g, 0), factor);
    return times(g, op_call2(g, "Sub", part, of_x(g, "BesselK0e")));
}

static bool j0_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call1(g, "Neg", of_x(g, "BesselJ1")));
}

static bool j1_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, except(g, 0, 0.5, op_call2(g, "Sub", of_x(g, "BesselJ0"), y_over_x(g))));
}

static bool y0_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call1(g, "Neg", of_x(g, "BesselY1")));
}

static bool y1_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call2(g, "Sub", of_x(g, "BesselY0"), y_over_x(g)));
}

static bool dawsn_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), y = gradient_y(g, 0);
    struct edge part = op_call2(g, "Mul", op_number(g, x, 2), op_call2(g, "Mul", x, y));
    return times(g, op_call2(g, "Sub", op_number(g, x, 1), part));
}

static bool expint_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call2(g, "RealDiv", of_x(g, "Exp"), gradient_x(g, 0)));
}

static bool fresnel(struct gradient *g, const char *op)
{
    struct edge x = gradient_x(g, 0);
    struct edge angle =
        op_call2(g, "Mul", op_number(g, x, 1.57079632679489661923), op_call1(g, "Square", x));
    return times(g, op_call1(g, op, angle));
}

static bool fresnel_cos_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return fresnel(g, "Cos");
}

static bool fresnel_sin_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return fresnel(g, "Sin");
}

static bool spence_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0);
    struct edge below = op_call2(g, "Sub", op_number(g, x, 1), x);
    struct edge slope = op_call2(g, "RealDiv", of_x(g, "Log"), below);
    return times(g, except(g, 1, -1, slope));
}

/* --- of two and three operands --- */

/* The density of the gamma distribution: the slope of Igamma(a, x) along x. */
static struct edge density(struct gradient *g)
{
    struct edge a = gradient_x(g, 0), x = gradient_x(g, 1);
    struct edge less = op_call2(g, "Sub", a, op_number(g, a, 1));
    struct edge power = op_call2(g, "Mul", less, op_call1(g, "Log", x));
    struct edge whole =
        op_call2(g, "Sub", op_call2(g, "Sub", power, x), op_call1(g, "Lgamma", a));
    return op_call1(g, "Exp", whole);
}

static bool igamma_slopes(struct gradient *g, bool upper)
{
    struct edge for_a = op_call2(g, "IgammaGradA", gradient_x(g, 0), gradient_x(g, 1));
    struct edge for_x = density(g), dy = g->of_outputs[0];
    if (upper)
        dy = op_call1(g, "Neg", dy);
    return op_gradient_pair(g, op_call2(g, "Mul", for_a, dy), op_call2(g, "Mul", for_x, dy));
}

static bool igamma_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return igamma_slopes(g, false);
}

static bool igammac_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return igamma_slopes(g, true);
}

/* Along x alone, the density of the beta distribution. */
static bool betainc_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge a = gradient_x(g, 0), b = gradient_x(g, 1), x = gradient_x(g, 2);
    struct edge one = op_number(g, a, 1);
    struct edge beta = op_call2(
        g, "Sub", op_call2(g, "AddV2", op_call1(g, "Lgamma", a), op_call1(g, "Lgamma", b)),
        op_call1(g, "Lgamma", op_call2(g, "AddV2", a, b)));
    struct edge right = op_call2(g, "Mul", op_call2(g, "Sub", b, one),
                                 op_call1(g, "Log1p", op_call1(g, "Neg", x)));
    struct edge left = op_call2(g, "Xlogy", op_call2(g, "Sub", a, one), x);
    struct edge slope =
        op_call1(g, "Exp", op_call2(g, "Sub", op_call2(g, "AddV2", right, left), beta));
    struct edge shape_a = op_shape_of(g, a), shape_x = op_shape_of(g, x);
    struct edge axes = op_call2(g, "BroadcastGradientArgs", shape_a, shape_x);
    g->of_inputs[2] = op_unbroadcast(g, op_call2(g, "Mul", slope, g->of_outputs[0]),
                                     builder_output(axes, 1), shape_x);
    return builder_ok(&g->build);
}

/* Scalars go with any shape; all others are the same. */
static bool infer_betainc(struct infer *infer, struct error *err)
{
    infer->outputs[0] = SHAPE_SCALAR;
    for (int i = 0; i < 3; i++) {
        const struct shape *in = &infer->inputs[i];
        if (in->rank < 0) {
            infer->outputs[0] = SHAPE_UNKNOWN;
            return true;
        }
        if (in->rank > 0 && infer->outputs[0].rank > 0) {
            if (!shape_merge(in, &infer->outputs[0], &infer->outputs[0], err))
                return false;
        } else if (in->rank > 0) {
            infer->outputs[0] = *in;
        }
    }
    return true;
}

const struct op op_bessel_i0 = {
    .name = "BesselI0",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = i0_gradient,
};

const struct op op_bessel_i1 = {
    .name = "BesselI1",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = i1_gradient,
};

const struct op op_bessel_i0e = {
    .name = "BesselI0e",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = i0e_gradient,
};

const struct op op_bessel_i1e = {
    .name = "BesselI1e",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = i1e_gradient,
};

const struct op op_bessel_j0 = {
    .name = "BesselJ0",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = j0_gradient,
};

const struct op op_bessel_j1 = {
    .name = "BesselJ1",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = j1_gradient,
};

const struct op op_bessel_k0 = {
    .name = "BesselK0",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = k0_gradient,
};

const struct op op_bessel_k1 = {
    .name = "BesselK1",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = k1_gradient,
};

const struct op op_bessel_k0e = {
    .name = "BesselK0e",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = k0e_gradient,
};

const struct op op_bessel_k1e = {
    .name = "BesselK1e",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = k1e_gradient,
};

const struct op op_bessel_y0 = {
    .name = "BesselY0",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = y0_gradient,
};

const struct op op_bessel_y1 = {
    .name = "BesselY1",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = y1_gradient,
};

const struct op op_dawsn = {
    .name = "Dawsn",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = dawsn_gradient,
};

const struct op op_expint = {
    .name = "Expint",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = expint_gradient,
};

const struct op op_fresnel_cos = {
    .name = "FresnelCos",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = fresnel_cos_gradient,
};

const struct op op_fresnel_sin = {
    .name = "FresnelSin",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = fresnel_sin_gradient,
};

const struct op op_spence = {
    .name = "Spence",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = spence_gradient,
};

const struct op op_igamma = {
    .name = "Igamma",
    .inputs = "a:T x:T",
    .outputs = "z:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_broadcast,
    .gradient = igamma_gradient,
};

const struct op op_igammac = {
    .name = "Igammac",
    .inputs = "a:T x:T",
    .outputs = "z:T",
    .attrs = "T:{bfloat16,half,float,double}",
    .infer = op_infer_broadcast,
    .gradient = igammac_gradient,
};

const struct op op_igamma_grad_a = {
    .name = "IgammaGradA",
    .inputs = "a:T x:T",
    .outputs = "z:T",
    .attrs = "T:{float,double}",
    .infer = op_infer_broadcast,
};

const struct op op_betainc = {
    .name = "Betainc",
    .inputs = "a:T b:T x:T",
    .outputs = "z:T",
    .attrs = "T:{float,double}",
    .infer = infer_betainc,
    .gradient = betainc_gradient,
};
