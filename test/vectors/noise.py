"""The noise of a chunk, as `native/src/flow/noise.rs` draws it: keyed by the bundle, counted by seed and step."""

import math

import numpy as np


def philox(counter, key):
    """Philox4x32-10, Salmon et al. 2011."""
    c, k = list(counter), list(key)
    for _ in range(10):
        product0, product1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(product1 >> 32) ^ c[1] ^ k[0], product1 & 0xFFFFFFFF, (product0 >> 32) ^ c[3] ^ k[1], product0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def noise(export_id, seed, step, rows, width):
    """Standard normal [rows, width], float32 values: Box-Muller on pairs of Philox words."""
    prefix = bytes.fromhex(export_id)[:8]
    key = [int.from_bytes(prefix[:4], "little"), int.from_bytes(prefix[4:], "little")]
    values = []
    for block in range(math.ceil(rows * width / 4)):
        words = philox([block, step, seed & 0xFFFFFFFF, seed >> 32], key)
        for a, b in (words[:2], words[2:]):
            radius = math.sqrt(-2 * math.log((a + 1) / 2**32))
            values += [radius * math.cos(2 * math.pi * (b / 2**32)), radius * math.sin(2 * math.pi * (b / 2**32))]
    return np.array(values[: rows * width], dtype=np.float32).astype(np.float64).reshape(rows, width)
