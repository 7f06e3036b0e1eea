/* sampler.c - candidate sampling: classes drawn as negatives for losses over many classes. */

#include "runtime/ops/internal.h"

#include "runtime/graph.h"

static bool infer_candidates(struct infer *infer, struct error *err)
{
    int64_t sampled = node_attr_int(infer->node, "num_sampled", 0);
    int64_t true_classes = node_attr_int(infer->node, "num_true", 0);
    struct shape wanted = SHAPE(-1, true_classes);
    if (!shape_merge(&infer->inputs[0], &wanted, &infer->outputs[1], err))
        return false;
    infer->outputs[0] = SHAPE(sampled);
    infer->outputs[2] = SHAPE(sampled);
    return true;
}

#define SAMPLER(name_, attrs_)                                                                 \
    {                                                                                          \
        .name = name_, .inputs = "true_classes:int64",                                         \
        .outputs = "sampled_candidates:int64 true_expected_count:float "                       \
                   "sampled_expected_count:float",                                             \
        .attrs = "num_true:int>=1 num_sampled:int>=1 unique:bool " attrs_                      \
                 " seed:int=0 seed2:int=0",                                                    \
        .flags = OP_STATEFUL, .infer = infer_candidates, .no_gradient = true,                  \
    }

const struct op op_all_candidate_sampler = SAMPLER("AllCandidateSampler", "");
const struct op op_uniform_candidate_sampler =
    SAMPLER("UniformCandidateSampler", "range_max:int>=1");
const struct op op_log_uniform_candidate_sampler =
    SAMPLER("LogUniformCandidateSampler", "range_max:int>=1");
const struct op op_learned_unigram_candidate_sampler =
    SAMPLER("LearnedUnigramCandidateSampler", "range_max:int>=1");
const struct op op_thread_unsafe_unigram_candidate_sampler =
    SAMPLER("ThreadUnsafeUnigramCandidateSampler", "range_max:int>=1");
const struct op op_fixed_unigram_candidate_sampler =
    SAMPLER("FixedUnigramCandidateSampler",
            "range_max:int>=1 vocab_file:string='' distortion:float=1.0 num_reserved_ids:int=0 "
            "num_shards:int>=1=1 shard:int>=0=0 unigrams:list(float)=[]");

static bool infer_hits(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < 3; i++)
        op_infer_rank(infer, i, 1);
    return true;
}

const struct op op_compute_accidental_hits = {
    .name = "ComputeAccidentalHits",
    .inputs = "true_classes:int64 sampled_candidates:int64",
    .outputs = "indices:int32 ids:int64 weights:float",
    .attrs = "num_true:int seed:int=0 seed2:int=0",
    .infer = infer_hits,
    .no_gradient = true,
};
