/* codec.c - files of images read and written. */

#include "runtime/ops/internal.h"

static bool infer_decode(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t channels = node_attr_int(infer->node, "channels", 0);
    infer->outputs[0] = SHAPE(-1, -1, channels > 0 ? channels : -1);
    return true;
}

static bool infer_frames(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(-1, -1, -1, 3);
    return true;
}

static bool infer_three(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(3);
    return true;
}

static bool infer_encode_png(struct infer *infer, struct error *err)
{
    (void)err;
    if (infer->inputs[0].rank < 3)
        return true;
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].rank -= 3;
    return true;
}

const struct op op_decode_png = {
    .name = "DecodePng",
    .inputs = "contents:string",
    .outputs = "image:dtype",
    .attrs = "channels:int=0 dtype:{uint8,uint16}=uint8",
    .flags = OP_EXPENSIVE,
    .infer = infer_decode,
    .no_gradient = true,
};

const struct op op_decode_jpeg = {
    .name = "DecodeJpeg",
    .inputs = "contents:string",
    .outputs = "image:uint8",
    .attrs = "channels:int=0 ratio:int=1 fancy_upscaling:bool=true "
             "try_recover_truncated:bool=false acceptable_fraction:float=1 "
             "dct_method:string=''",
    .flags = OP_EXPENSIVE,
    .infer = infer_decode,
    .no_gradient = true,
};

const struct op op_decode_bmp = {
    .name = "DecodeBmp",
    .inputs = "contents:string",
    .outputs = "image:uint8",
    .attrs = "channels:int=0",
    .infer = infer_decode,
    .no_gradient = true,
};

const struct op op_decode_gif = {
    .name = "DecodeGif",
    .inputs = "contents:string",
    .outputs = "image:uint8",
    .attrs = "",
    .flags = OP_EXPENSIVE,
    .infer = infer_frames,
    .no_gradient = true,
};

const struct op op_decode_image = {
    .name = "DecodeImage",
    .inputs = "contents:string",
    .outputs = "image:dtype",
    .attrs = "channels:int=0 dtype:{uint8,uint16,float}=uint8 expand_animations:bool=true",
    .flags = OP_EXPENSIVE,
    .no_gradient = true,
};

const struct op op_extract_jpeg_shape = {
    .name = "ExtractJpegShape",
    .inputs = "contents:string",
    .outputs = "image_shape:output_type",
    .attrs = "output_type:{int32,int64}=int32",
    .infer = infer_three,
    .no_gradient = true,
};

const struct op op_encode_png = {
    .name = "EncodePng",
    .inputs = "image:T",
    .outputs = "contents:string",
    .attrs = "compression:int=-1 T:{uint8,uint16}=uint8",
    .flags = OP_EXPENSIVE,
    .infer = infer_encode_png,
    .no_gradient = true,
};

const struct op op_encode_jpeg = {
    .name = "EncodeJpeg",
    .inputs = "image:uint8",
    .outputs = "contents:string",
    .attrs = "format:{'','grayscale','rgb'}='' quality:int=95 progressive:bool=false "
             "optimize_size:bool=false chroma_downsampling:bool=true "
             "density_unit:{'in','cm'}='in' x_density:int=300 y_density:int=300 "
             "xmp_metadata:string=''",
    .flags = OP_EXPENSIVE,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_encode_jpeg_variable_quality = {
    .name = "EncodeJpegVariableQuality",
    .inputs = "images:uint8 quality:int32",
    .outputs = "contents:string",
    .attrs = "",
    .flags = OP_EXPENSIVE,
    .infer = op_infer_scalar,
    .no_gradient = true,
};
