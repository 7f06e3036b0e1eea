/* summary_pb.c - summaries: numbers and histograms as protobufs for event files. */

#include <float.h>
#include <math.h>

#include "tensorflow/event.pb-c.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "kernels/ref/numbers.h"
#include "proto/message.h"

/* Output 0 becomes the serialized summary. */
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

static char *tag_of(struct arena *arena, const struct tensor *tags, int64_t index)
{
    const struct tensor_string *text = tensor_strings(tags) + index;
    return arena_text_n(arena, text->data ? text->data : "", text->size);
}

/* One value per tag. */
static bool scalar_summary_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *tags = kernel_in(call, 0), *values = kernel_in(call, 1);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!shape_equal(&tags->shape, &values->shape))
        return fail(err, INVALID, "tags and values are not the same shape: %s != %s",
                    shape_text(&tags->shape, a, sizeof(a)),
                    shape_text(&values->shape, b, sizeof(b)));
    struct arena *arena = arena_new();
    size_t count = (size_t)values->count;
    Tensorflow__Summary__Value *items = arena_array(arena, count + 1, sizeof(*items));
    Tensorflow__Summary summary = TENSORFLOW__SUMMARY__INIT;
    summary.n_value = count;
    summary.value = arena_array(arena, count + 1, sizeof(*summary.value));
    for (size_t i = 0; i < count; i++) {
        tensorflow__summary__value__init(&items[i]);
        items[i].tag = tag_of(arena, tags, (int64_t)i);
        items[i].value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        items[i].simple_value = values->dtype == F32 ? ((const float *)values->data)[i]
                                                     : (float)tensor_number(values, (int64_t)i);
        summary.value[i] = &items[i];
    }
    bool ok = give(call, &summary, err);
    arena_free(arena);
    return ok;
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
                    return fail(err, INVALID, "Duplicate tag %s found in summary inputs", tag);
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

static bool histogram_summary_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *tag = kernel_in(call, 0), *values = kernel_in(call, 1);
    double limits[BUCKETS_MAX], counts[BUCKETS_MAX] = {0};
    double out_limits[BUCKETS_MAX], out_counts[BUCKETS_MAX];
    if (tag->shape.rank != 0)
        return fail(err, INVALID, "tags must be scalar");
    for (int64_t i = 0; i < values->count; i++)
        if (!isfinite(tensor_number(values, i)))
            return fail(err, INVALID, "%s in summary histogram for: %s",
                        isnan(tensor_number(values, i)) ? "Nan" : "Infinity", call->node->name);
    struct arena *arena = arena_new();
    Tensorflow__HistogramProto histogram = TENSORFLOW__HISTOGRAM_PROTO__INIT;
    histogram.bucket_limit = out_limits;
    histogram.bucket = out_counts;
    int limits_count = bucket_limits(limits);
    count_values(values, limits, limits_count, counts, &histogram);
    encode_buckets(limits, limits_count, counts, &histogram);
    Tensorflow__Summary__Value value = TENSORFLOW__SUMMARY__VALUE__INIT;
    value.tag = tag_of(arena, tag, 0);
    value.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_HISTO;
    value.histo = &histogram;
    Tensorflow__Summary summary = TENSORFLOW__SUMMARY__INIT;
    summary.n_value = 1;
    summary.value = (Tensorflow__Summary__Value *[]){&value};
    bool ok = give(call, &summary, err);
    arena_free(arena);
    return ok;
}

#define SUMMARY(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_scalar_summary = SUMMARY("ScalarSummary", scalar_summary_run);
const struct kernel kernel_merge_summary = SUMMARY("MergeSummary", merge_summary_run);
const struct kernel kernel_histogram_summary =
    SUMMARY("HistogramSummary", histogram_summary_run);
