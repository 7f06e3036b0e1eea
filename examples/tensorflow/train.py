"""A Keras model on drawn squares and crosses: as one writes it anywhere, with the TensorBoard callback."""
import os

import keras
import numpy as np

out = os.environ.get("TRAINYARD_OUT", "logs")  # TensorBoard's folder; its curves appear on the job's page
random = np.random.default_rng(0)


def draw(count):
    images, labels = np.zeros((count, 16, 16, 1), "float32"), random.integers(0, 2, count)
    for image, label in zip(images, labels):
        x, y = random.integers(1, 8, 2)
        for i in range(8):
            if label:
                image[y + i, x + i] = image[y + i, x + 7 - i] = 1
            else:
                image[y + i, [x, x + 7]] = image[[y, y + 7], x + i] = 1
    return images + random.normal(0, 0.3, images.shape).astype("float32"), labels


model = keras.Sequential([
    keras.layers.Conv2D(8, 3, activation="relu"),
    keras.layers.MaxPooling2D(),
    keras.layers.Flatten(),
    keras.layers.Dense(2),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(*draw(2000), validation_data=draw(500), epochs=5, verbose=2,
          callbacks=[keras.callbacks.TensorBoard(out)])
os.makedirs(os.path.join(out, "artifacts"), exist_ok=True)
model.save(os.path.join(out, "artifacts", "model.keras"))
