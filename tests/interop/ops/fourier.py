"""fourier.py - rows about Fourier transforms."""

import numpy as np
import tensorflow as tf

from .frame import Row


def fourier(rank):
    def make(s):
        dtype = s.pick("complex64", "complex128")
        return {"input": s.values(s.shape(rank, rank + 1, 7), dtype=dtype)}
    return make


def real_fourier(rank, inverse):
    def make(s):
        wide = s.flag()
        real, whole = (tf.float64, tf.complex128) if wide else (tf.float32, tf.complex64)
        shape = s.shape(rank, rank + 1, 7, least=1)
        lengths = list(shape[-rank:])
        if s.rng.random() < 0.3:
            lengths = [s.int(0 if s.rng.random() < 0.1 else 1, n) for n in lengths]
        elif inverse:
            lengths[-1] = 2 * (lengths[-1] - 1) + s.int(0, 1)
        values = s.values(shape, -3, 3, dtype=whole if inverse else real)
        attr = {"Treal": real} if inverse else {"Tcomplex": whole}
        return {"input": values, "fft_length": np.array(lengths, np.int32), **attr}
    return make


ROWS = [
    *(Row(name + rank, "float32", fourier(int((rank or "1")[0])), "sum")
      for name in ("FFT", "IFFT") for rank in ("", "2D", "3D")),
    *(Row(name + rank, "float32", real_fourier(int((rank or "1")[0]), name == "IRFFT"), "sum",
          constant=("fft_length",))
      for name in ("RFFT", "IRFFT") for rank in ("", "2D", "3D")),
]
