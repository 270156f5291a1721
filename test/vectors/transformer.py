"""The image tower and the prefix of the flow-vla family in NumPy, token by token and one head at a time."""

import math

import numpy as np


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def swish(x):
    return x / (1 + np.exp(-x))


def layer_norm(w, name, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6) * w[f"{name}.scale"] + w[f"{name}.bias"]


def rms(x):
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)


def rope(vector, position):
    """Rotates pairs (i, i + D/2) of one head's vector by position / 10000^(2i/D). Power, quotient and angle are float32, as in the
    publishers' code (transformers, `Gemma2RotaryEmbedding` and its like); sine and cosine are not rounded."""
    half = len(vector) // 2
    out = np.empty_like(vector)
    for i in range(half):
        frequency = np.float32(1) / np.float32(10000) ** np.float32(2 * i / len(vector))
        angle = float(np.float32(position) * frequency)
        out[i] = vector[i] * math.cos(angle) - vector[i + half] * math.sin(angle)
        out[i + half] = vector[i + half] * math.cos(angle) + vector[i] * math.sin(angle)
    return out


def softmax_mix(scores, values):
    weights = np.exp(scores - scores.max())
    return (weights / weights.sum()) @ values


def see(w, image, arch):
    """One image [3, H, W] to its prefix tokens [patches, language width]. No other image is looked at."""
    size, patch = arch["vision"], arch["vision"]["patch"]
    kernel, bias = w["vision.patch.weight"], w["vision.patch.bias"]
    tokens = []
    for top in range(0, image.shape[1], patch):
        for left in range(0, image.shape[2], patch):
            tokens.append((kernel * image[None, :, top : top + patch, left : left + patch]).sum(axis=(1, 2, 3)) + bias)
    x = np.array(tokens) + w["vision.positions"]
    head_dim = size["width"] // size["heads"]
    for layer in range(size["layers"]):
        name = f"vision.blocks.{layer}"
        normed = layer_norm(w, f"{name}.attention.norm", x)
        q, k, v = (w.dense(f"{name}.attention.{part}", normed) for part in ("query", "key", "value"))
        mixed = np.empty_like(q)
        for head in range(size["heads"]):
            span = slice(head * head_dim, (head + 1) * head_dim)
            for token in range(len(x)):
                mixed[token, span] = softmax_mix(k[:, span] @ q[token, span] / math.sqrt(head_dim), v[:, span])
        x = x + w.dense(f"{name}.attention.output", mixed)
        normed = layer_norm(w, f"{name}.mlp.norm", x)
        x = x + w.dense(f"{name}.mlp.down", gelu(w.dense(f"{name}.mlp.up", normed)))
    return w.dense("vision.projection", layer_norm(w, "vision.norm", x))


def heads_of(flat, count, head_dim):
    """[tokens, count · head_dim] to a list of [tokens, head_dim]."""
    return [flat[:, head * head_dim : (head + 1) * head_dim] for head in range(count)]


def turned(heads, positions):
    return [np.array([rope(vector, position) for vector, position in zip(head, positions)]) for head in heads]


def mlp(w, name, x):
    return w.dense(f"{name}.mlp.down", gelu(w.dense(f"{name}.mlp.gate", x)) * w.dense(f"{name}.mlp.up", x))


def key_head(head, size):
    """The key-value head that a query head reads: neighbours share one."""
    return head // (size["heads"] // size["kv_heads"])


def grouped_attention(queries, keys, values, size):
    """All keys given here are valid, and every query sees all of them."""
    out = []
    for head, rows in enumerate(queries):
        k, v = keys[key_head(head, size)], values[key_head(head, size)]
        out.append(np.array([softmax_mix(k @ row / math.sqrt(size["head_dim"]), v) for row in rows]))
    return np.concatenate(out, axis=1)


def prefix_cache(w, images, ids, arch):
    """Per layer (keys, values), each a list over key-value heads of [valid tokens, head_dim]. Padding never enters: only valid tokens
    are computed here, at positions 0, 1, 2 …"""
    size = arch["language"]
    x = np.concatenate([see(w, image, arch) for image in images] + [w["language.embedding"][ids]])
    positions = range(len(x))
    cache = []
    for layer in range(size["layers"]):
        name = f"language.blocks.{layer}"
        normed = rms(x) * w[f"{name}.norm1.scale"]
        keys = turned(heads_of(w.dense(f"{name}.key", normed), size["kv_heads"], size["head_dim"]), positions)
        values = heads_of(w.dense(f"{name}.value", normed), size["kv_heads"], size["head_dim"])
        cache.append((keys, values))
        if layer == size["layers"] - 1:
            break  # nobody reads the last layer's output
        queries = turned(heads_of(w.dense(f"{name}.query", normed), size["heads"], size["head_dim"]), positions)
        x = x + w.dense(f"{name}.output", grouped_attention(queries, keys, values, size))
        x = x + mlp(w, name, rms(x) * w[f"{name}.norm2.scale"])
    return cache
