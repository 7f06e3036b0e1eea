/*
 * no_kernel.c - ops that TensorFlow computes on other devices than a CPU.
 *
 * Graphs that have them are read; running one of them says that there is no kernel.
 */

#include "runtime/ops/internal.h"

const struct op op_cudnn_rnn_params_size = {
    .name = "CudnnRNNParamsSize",
    .inputs = "num_layers:int32 num_units:int32 input_size:int32",
    .outputs = "params_size:S",
    .attrs = "T:{bfloat16,half,float,double} S:{int32,int64} "
             "rnn_mode:{'rnn_relu','rnn_tanh','lstm','gru'}='lstm' "
             "input_mode:{'linear_input','skip_input','auto_select'}='linear_input' "
             "direction:{'unidirectional','bidirectional'}='unidirectional' dropout:float=0.0 "
             "seed:int=0 seed2:int=0 num_proj:int=0",
};

const struct op op_cudnn_rnn = {
    .name = "CudnnRNN",
    .inputs = "input:T input_h:T input_c:T params:T",
    .outputs = "output:T output_h:T output_c:T reserve_space:T",
    .attrs =
        "T:{bfloat16,half,float,double} rnn_mode:{'rnn_relu','rnn_tanh','lstm','gru'}='lstm' "
        "input_mode:{'linear_input','skip_input','auto_select'}='linear_input' "
        "direction:{'unidirectional','bidirectional'}='unidirectional' dropout:float=0.0 "
        "seed:int=0 seed2:int=0 is_training:bool=true",
    .flags = OP_STATEFUL,
};

const struct op op_cudnn_rnnv2 = {
    .name = "CudnnRNNV2",
    .inputs = "input:T input_h:T input_c:T params:T",
    .outputs = "output:T output_h:T output_c:T reserve_space:T host_reserved:int8",
    .attrs =
        "T:{bfloat16,half,float,double} rnn_mode:{'rnn_relu','rnn_tanh','lstm','gru'}='lstm' "
        "input_mode:{'linear_input','skip_input','auto_select'}='linear_input' "
        "direction:{'unidirectional','bidirectional'}='unidirectional' dropout:float=0.0 "
        "seed:int=0 seed2:int=0 is_training:bool=true",
    .flags = OP_STATEFUL,
};

const struct op op_cudnn_rnnv3 = {
    .name = "CudnnRNNV3",
    .inputs = "input:T input_h:T input_c:T params:T sequence_lengths:int32",
    .outputs = "output:T output_h:T output_c:T reserve_space:T host_reserved:int8",
    .attrs =
        "T:{bfloat16,half,float,double} rnn_mode:{'rnn_relu','rnn_tanh','lstm','gru'}='lstm' "
        "input_mode:{'linear_input','skip_input','auto_select'}='linear_input' "
        "direction:{'unidirectional','bidirectional'}='unidirectional' dropout:float=0.0 "
        "seed:int=0 seed2:int=0 num_proj:int=0 is_training:bool=true time_major:bool=true",
    .flags = OP_STATEFUL,
};

const struct op op_cudnn_rnn_backprop = {
    .name = "CudnnRNNBackprop",
    .inputs = "input:T input_h:T input_c:T params:T output:T output_h:T output_c:T "
              "output_backprop:T output_h_backprop:T output_c_backprop:T reserve_space:T",
    .outputs = "input_backprop:T input_h_backprop:T input_c_backprop:T params_backprop:T",
    .attrs =
        "T:{bfloat16,half,float,double} rnn_mode:{'rnn_relu','rnn_tanh','lstm','gru'}='lstm' "
        "input_mode:{'linear_input','skip_input','auto_select'}='linear_input' "
        "direction:{'unidirectional','bidirectional'}='unidirectional' dropout:float=0.0 "
        "seed:int=0 seed2:int=0",
    .flags = OP_STATEFUL,
};

const struct op op_cudnn_rnn_backprop_v2 = {
    .name = "CudnnRNNBackpropV2",
    .inputs =
        "input:T input_h:T input_c:T params:T output:T output_h:T output_c:T output_backprop:T "
        "output_h_backprop:T output_c_backprop:T reserve_space:T host_reserved:int8",
    .outputs = "input_backprop:T input_h_backprop:T input_c_backprop:T params_backprop:T",
    .attrs =
        "T:{bfloat16,half,float,double} rnn_mode:{'rnn_relu','rnn_tanh','lstm','gru'}='lstm' "
        "input_mode:{'linear_input','skip_input','auto_select'}='linear_input' "
        "direction:{'unidirectional','bidirectional'}='unidirectional' dropout:float=0.0 "
        "seed:int=0 seed2:int=0",
    .flags = OP_STATEFUL,
};

const struct op op_cudnn_rnn_backprop_v3 = {
    .name = "CudnnRNNBackpropV3",
    .inputs = "input:T input_h:T input_c:T params:T sequence_lengths:int32 output:T output_h:T "
              "output_c:T output_backprop:T output_h_backprop:T output_c_backprop:T "
              "reserve_space:T host_reserved:int8",
    .outputs = "input_backprop:T input_h_backprop:T input_c_backprop:T params_backprop:T",
    .attrs =
        "T:{bfloat16,half,float,double} rnn_mode:{'rnn_relu','rnn_tanh','lstm','gru'}='lstm' "
        "input_mode:{'linear_input','skip_input','auto_select'}='linear_input' "
        "direction:{'unidirectional','bidirectional'}='unidirectional' dropout:float=0.0 "
        "seed:int=0 seed2:int=0 num_proj:int=0 time_major:bool=true",
    .flags = OP_STATEFUL,
};

const struct op op_cudnn_rnn_params_to_canonical = {
    .name = "CudnnRNNParamsToCanonical",
    .inputs = "num_layers:int32 num_units:int32 input_size:int32 params:T",
    .outputs = "weights:num_params*T biases:num_params*T",
    .attrs = "T:{bfloat16,half,float,double} num_params:int>=1 "
             "rnn_mode:{'rnn_relu','rnn_tanh','lstm','gru'}='lstm' "
             "input_mode:{'linear_input','skip_input','auto_select'}='linear_input' "
             "direction:{'unidirectional','bidirectional'}='unidirectional' dropout:float=0.0 "
             "seed:int=0 seed2:int=0",
};

const struct op op_cudnn_rnn_params_to_canonical_v2 = {
    .name = "CudnnRNNParamsToCanonicalV2",
    .inputs = "num_layers:int32 num_units:int32 input_size:int32 params:T",
    .outputs = "weights:num_params_weights*T biases:num_params_biases*T",
    .attrs = "T:{bfloat16,half,float,double} num_params_weights:int>=1 "
             "num_params_biases:int>=1 rnn_mode:{'rnn_relu','rnn_tanh','lstm','gru'}='lstm' "
             "input_mode:{'linear_input','skip_input','auto_select'}='linear_input' "
             "direction:{'unidirectional','bidirectional'}='unidirectional' dropout:float=0.0 "
             "seed:int=0 seed2:int=0 num_proj:int=0",
};

const struct op op_cudnn_rnn_canonical_to_params = {
    .name = "CudnnRNNCanonicalToParams",
    .inputs = "num_layers:int32 num_units:int32 input_size:int32 weights:num_params*T "
              "biases:num_params*T",
    .outputs = "params:T",
    .attrs = "T:{bfloat16,half,float,double} num_params:int>=1 "
             "rnn_mode:{'rnn_relu','rnn_tanh','lstm','gru'}='lstm' "
             "input_mode:{'linear_input','skip_input','auto_select'}='linear_input' "
             "direction:{'unidirectional','bidirectional'}='unidirectional' dropout:float=0.0 "
             "seed:int=0 seed2:int=0",
};

const struct op op_cudnn_rnn_canonical_to_params_v2 = {
    .name = "CudnnRNNCanonicalToParamsV2",
    .inputs = "num_layers:int32 num_units:int32 input_size:int32 weights:num_params_weights*T "
              "biases:num_params_biases*T",
    .outputs = "params:T",
    .attrs = "T:{bfloat16,half,float,double} num_params_weights:int>=1 "
             "num_params_biases:int>=1 rnn_mode:{'rnn_relu','rnn_tanh','lstm','gru'}='lstm' "
             "input_mode:{'linear_input','skip_input','auto_select'}='linear_input' "
             "direction:{'unidirectional','bidirectional'}='unidirectional' dropout:float=0.0 "
             "seed:int=0 seed2:int=0 num_proj:int=0",
};

const struct op op_ctc_loss_v2 = {
    .name = "CTCLossV2",
    .inputs = "inputs:float labels_indices:int64 labels_values:int32 sequence_length:int32",
    .outputs = "loss:float gradient:float",
    .attrs = "preprocess_collapse_repeated:bool=false ctc_merge_repeated:bool=true "
             "ignore_longer_outputs_than_inputs:bool=false",
};

const struct op op_nccl_all_reduce = {
    .name = "NcclAllReduce",
    .inputs = "input:T",
    .outputs = "data:T",
    .attrs = "reduction:{'min','max','prod','sum'} T:{half,float,double,int32,int64} "
             "num_devices:int shared_name:string",
    .flags = OP_STATEFUL,
};

const struct op op_nccl_reduce = {
    .name = "NcclReduce",
    .inputs = "input:num_devices*T",
    .outputs = "data:T",
    .attrs = "reduction:{'min','max','prod','sum'} T:{half,float,double,int32,int64} "
             "num_devices:int>=1",
    .flags = OP_STATEFUL,
};

const struct op op_nccl_broadcast = {
    .name = "NcclBroadcast",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:{half,float,double,int32,int64} shape:shape",
    .flags = OP_STATEFUL,
};

const struct op op_max_pool_grad_grad_with_argmax = {
    .name = "MaxPoolGradGradWithArgmax",
    .inputs = "input:T grad:T argmax:Targmax",
    .outputs = "output:T",
    .attrs = "ksize:list(int)>=4 strides:list(int)>=4 padding:{'SAME','VALID'} "
             "include_batch_in_index:bool=false Targmax:{int32,int64} "
             "T:{float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64}",
};

const struct op op_cross_replica_sum = {
    .name = "CrossReplicaSum",
    .inputs = "input:T group_assignment:int32",
    .outputs = "output:T",
    .attrs = "T:{half,bfloat16,float,double,int32,uint32}",
    .flags = OP_STATEFUL,
};

const struct op op_all_to_all = {
    .name = "AllToAll",
    .inputs = "input:T group_assignment:int32",
    .outputs = "output:T",
    .attrs = "T:{float,double,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,"
             "bfloat16,qint16,quint16,uint16,complex128,half,uint32,uint64,bool} "
             "concat_dimension:int split_dimension:int split_count:int",
    .flags = OP_STATEFUL,
};

const struct op op_collective_permute = {
    .name = "CollectivePermute",
    .inputs = "input:T source_target_pairs:int32",
    .outputs = "output:T",
    .attrs = "T:{float,double,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,"
             "bfloat16,qint16,quint16,uint16,complex128,half,uint32,uint64}",
    .flags = OP_STATEFUL,
};

const struct op op_xla_host_compute = {
    .name = "XlaHostCompute",
    .inputs = "inputs:list(Tinputs)",
    .outputs = "outputs:list(Toutputs)",
    .attrs = "Tinputs:list(type)>=0 Toutputs:list(type)>=0 ancestors:list(string)>=0 "
             "shapes:list(shape)>=0 shape_inference_graph:func key:string send_key:string='' "
             "recv_key:string='' cost_estimate_ns:int=1000000 tpu_core:int=0",
    .flags = OP_STATEFUL,
};
