/* summary_pb.c - summaries: numbers and histograms as protobufs for event files. */

#include <float.h>
#include <math.h>

#include "tensorflow/event.pb-c.h"

#include "base/map.h"
#include "base/str.h"
#include "kernels/io/summary.h"
#include "proto/message.h"

static bool give(struct kernel_call *call, const Tensorflow__Summary *summary,
                 struct error *err)
{
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    struct str bytes = {0};
    if (!out)
        return false;
    message_pack(&summary->base, &bytes);
    tensor_set_string(out, 0, str_text(&bytes), bytes.size);
    str_release(&bytes);
    return true;
}

bool kernel_summary_give(struct kernel_call *call, summary_make *make, struct error *err)
{
    struct arena *arena = arena_new();
    Tensorflow__Summary summary = TENSORFLOW__SUMMARY__INIT;
    bool ok = make(call, 0, arena, &summary, err) && give(call, &summary, err);
    arena_free(arena);
    return ok;
}

Tensorflow__Summary__Value *kernel_summary_value(Tensorflow__Summary *summary, char *tag,
                                                 struct arena *arena)
{
    Tensorflow__Summary__Value *value = arena_alloc(arena, sizeof(*value));
    tensorflow__summary__value__init(value);
    value->tag = tag;
    summary->value = arena_array(arena, 1, sizeof(*summary->value));
    summary->value[0] = value;
    summary->n_value = 1;
    return value;
}

static char *tag_of(struct arena *arena, const struct tensor *tags, int64_t index)
{
    const struct tensor_string *text = tensor_strings(tags) + index;
    return arena_text_n(arena, text->data ? text->data : "", text->size);
}

bool kernel_summary_tag(const struct tensor *tag, struct arena *arena, char **text,
                        struct error *err)
{
    if (tag->shape.rank != 0)
        return fail(err, INVALID, "tag must be scalar");
    *text = tag_of(arena, tag, 0);
    return true;
}

/* Widened by its bits: a conversion of this thread may take the smallest numbers for zero. */
static float as_float(const struct tensor *values, int64_t i)
{
    if (values->dtype == F32)
        return ((const float *)values->data)[i];
    if (values->dtype == BF16)
        return dtype_bf16_to_f32(((const uint16_t *)values->data)[i]);
    return (float)tensor_number(values, i);
}

bool kernel_summary_scalar(const struct kernel_call *call, int first, struct arena *arena,
                           Tensorflow__Summary *summary, struct error *err)
{
    const struct tensor *tags = kernel_in(call, first), *values = kernel_in(call, first + 1);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    bool one = tags->count == 1; /* then it is named */
    if (!shape_equal(&tags->shape, &values->shape))
        return fail(err, INVALID, "tags and values are not the same shape: %s != %s%s%.*s%s",
                    shape_text(&tags->shape, a, sizeof(a)),
                    shape_text(&values->shape, b, sizeof(b)), one ? " (tag '" : "",
                    one ? (int)tensor_strings(tags)->size : 0,
                    one ? tensor_strings(tags)->data : "", one ? "')" : "");
    size_t count = (size_t)values->count;
    Tensorflow__Summary__Value *items = arena_array(arena, count + 1, sizeof(*items));
    summary->n_value = count;
    summary->value = arena_array(arena, count + 1, sizeof(*summary->value));
    for (size_t i = 0; i < count; i++) {
        tensorflow__summary__value__init(&items[i]);
        items[i].tag = tag_of(arena, tags, (int64_t)i);
        items[i].value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        items[i].simple_value = as_float(values, (int64_t)i);
        summary->value[i] = &items[i];
    }
    return true;
}

static bool scalar_summary_run(struct kernel_call *call, struct error *err)
{
    return kernel_summary_give(call, kernel_summary_scalar, err);
}

/* All values of all inputs; a tag may occur once. */
static bool merge_values(const struct kernel_call *call, struct arena *arena, struct map *tags,
                         Tensorflow__Summary *merged, struct error *err)
{
    for (int i = 0; i < call->in_count; i++) {
        const struct tensor *in = kernel_in(call, i);
        for (int64_t k = 0; k < in->count; k++) {
            const struct tensor_string *bytes = tensor_strings(in) + k;
            Tensorflow__Summary *part = message_unpack(&tensorflow__summary__descriptor,
                                                       bytes->data, bytes->size, arena, err);
            if (!part)
                return fail(err, INVALID, "Could not parse one of the summary inputs");
            Tensorflow__Summary__Value **all =
                arena_array(arena, merged->n_value + part->n_value + 1, sizeof(*all));
            for (size_t v = 0; v < merged->n_value; v++)
                all[v] = merged->value[v];
            for (size_t v = 0; v < part->n_value; v++) {
                const char *tag = part->value[v]->tag;
                if (tag[0] && map_has(tags, tag))
                    return fail(err, INVALID, "Duplicate tag %s found in summary inputs ", tag);
                map_set(tags, tag, part);
                all[merged->n_value++] = part->value[v];
            }
            merged->value = all;
        }
    }
    return true;
}

static bool merge_summary_run(struct kernel_call *call, struct error *err)
{
    struct arena *arena = arena_new();
    struct map *tags = map_new();
    Tensorflow__Summary merged = TENSORFLOW__SUMMARY__INIT;
    bool ok = merge_values(call, arena, tags, &merged, err) && give(call, &merged, err);
    map_free(tags);
    arena_free(arena);
    return ok;
}

/* --- histograms: buckets grow by a tenth from 1e-12 to 1e20, on both sides of zero --- */

#define BUCKETS_MAX 2000

static int bucket_limits(double *limits)
{
    int side = 0, count = 0;
    static const double first = 1e-12, last = 1e20, growth = 1.1;
    double up[BUCKETS_MAX / 2];
    for (double v = first; v < last; v *= growth)
        up[side++] = v;
    up[side++] = DBL_MAX;
    for (int i = side - 1; i >= 0; i--)
        limits[count++] = -up[i];
    limits[count++] = 0;
    for (int i = 0; i < side; i++)
        limits[count++] = up[i];
    return count;
}

static void count_values(const struct tensor *values, const double *limits, int limits_count,
                         double *buckets, Tensorflow__HistogramProto *histogram)
{
    histogram->min = DBL_MAX;
    histogram->max = -DBL_MAX;
    for (int64_t i = 0; i < values->count; i++) {
        double value = tensor_number(values, i);
        int low = 0, high = limits_count - 1;
        while (low < high) { /* the first limit above the value */
            int middle = (low + high) / 2;
            if (limits[middle] > value)
                high = middle;
            else
                low = middle + 1;
        }
        buckets[low]++;
        histogram->min = value < histogram->min ? value : histogram->min;
        histogram->max = value > histogram->max ? value : histogram->max;
        histogram->num++;
        histogram->sum += value;
        histogram->sum_squares += value * value;
    }
}

/* Runs of empty buckets become one. */
static void encode_buckets(const double *limits, int limits_count, const double *buckets,
                           Tensorflow__HistogramProto *histogram)
{
    for (int i = 0; i < limits_count;) {
        double end = limits[i], count = buckets[i];
        i++;
        while (count <= 0 && i < limits_count && buckets[i] <= 0)
            end = limits[i++];
        histogram->bucket_limit[histogram->n_bucket_limit++] = end;
        histogram->bucket[histogram->n_bucket++] = count;
    }
}

/* An op that gives a summary names its node in errors, one that writes it the tag. */
bool kernel_summary_histogram(const struct kernel_call *call, int first, struct arena *arena,
                              Tensorflow__Summary *summary, struct error *err)
{
    const struct tensor *tag = kernel_in(call, first), *values = kernel_in(call, first + 1);
    double limits[BUCKETS_MAX], counts[BUCKETS_MAX] = {0};
    if (tag->shape.rank != 0)
        return fail(err, INVALID, "tags must be scalar");
    char *name = tag_of(arena, tag, 0);
    for (int64_t i = 0; i < values->count; i++)
        if (!isfinite(tensor_number(values, i)))
            return fail(err, INVALID, "%s for: %s",
                        isnan(tensor_number(values, i)) ? "Nan in summary histogram"
                                                        : "Infinity in Histogram",
                        first ? name : call->node->name);
    Tensorflow__HistogramProto *histogram = arena_alloc(arena, sizeof(*histogram));
    tensorflow__histogram_proto__init(histogram);
    histogram->bucket_limit = arena_array(arena, BUCKETS_MAX, sizeof(double));
    histogram->bucket = arena_array(arena, BUCKETS_MAX, sizeof(double));
    int limits_count = bucket_limits(limits);
    count_values(values, limits, limits_count, counts, histogram);
    encode_buckets(limits, limits_count, counts, histogram);
    Tensorflow__Summary__Value *value = kernel_summary_value(summary, name, arena);
    value->value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_HISTO;
    value->histo = histogram;
    return true;
}

static bool histogram_summary_run(struct kernel_call *call, struct error *err)
{
    return kernel_summary_give(call, kernel_summary_histogram, err);
}

#define SUMMARY(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_scalar_summary = SUMMARY("ScalarSummary", scalar_summary_run);
const struct kernel kernel_merge_summary = SUMMARY("MergeSummary", merge_summary_run);
const struct kernel kernel_histogram_summary =
    SUMMARY("HistogramSummary", histogram_summary_run);
