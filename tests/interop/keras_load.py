"""keras_load.py SAVED FOLDER... - Keras loads what keras-vectors --save SAVED wrote of the models in FOLDERs, and finds their outputs."""
import base64
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras
import numpy as np


def array(json_array):
    value = np.frombuffer(base64.b64decode(json_array["base64"]), json_array["dtype"])
    return value.reshape(json_array["shape"])


def check(saved, folder):
    name = os.path.basename(folder.rstrip("/"))
    with open(f"{folder}/expected.json") as f:
        wanted = json.load(f)
    inputs = [array(x) for x in wanted["input"]]
    inputs = inputs if len(inputs) > 1 else inputs[0]
    output = array(wanted["output_after"][0])
    close = dict(rtol=10 * wanted["rtol"], atol=10 * wanted["atol"])  # five steps of ours and of Keras's are behind it
    whole = keras.models.load_model(f"{saved}/{name}.keras")
    np.testing.assert_allclose(whole(inputs, training=False), output, **close)
    with open(f"{folder}/model.json") as f:
        text = f.read()
    layers = json.loads(text)["config"]["layers"]
    if any(layer["class_name"] in ("Sequential", "Functional") for layer in layers):
        return  # models inside of the model are flat in what we write
    weights = keras.models.model_from_json(text)
    weights.load_weights(f"{saved}/{name}.weights.h5")
    np.testing.assert_allclose(weights(inputs, training=False), output, **close)


failed = 0
for folder in sys.argv[2:]:
    try:
        check(sys.argv[1], folder)
        print(f"ok keras/load {os.path.basename(folder)}")
    except Exception as problem:
        failed = 1
        print(f"FAIL keras/load {os.path.basename(folder)}: {str(problem)[:600]}")
sys.exit(failed)
