"""The flow of the flow-vla family in NumPy: one whole chunk from the frames of an observation."""

import math

import numpy as np
from noise import noise
from observed import (
    INSTRUCTION,
    SEED,
    STEP,
    flow_times,
    held_latent,
    load_image,
    padded_state,
    prompt_tokens,
    read_bundle,
    state_of,
    told_time,
    views_of,
)
from rows import robot_rows
from transformer import grouped_attention, heads_of, mlp, prefix_cache, rms, swish, turned
from weights import Weights, columns_of


def row_positions(prefix_length, rows):
    return range(prefix_length, prefix_length + rows)


def time_condition(w, t, arch):
    half = arch["expert"]["time_width"] // 2
    periods = [4e-3 * (4.0 / 4e-3) ** (i / (half - 1)) for i in range(half)]
    angles = np.array([2 * math.pi * t / period for period in periods])
    embedded = np.concatenate([np.sin(angles), np.cos(angles)])
    return swish(w.dense("expert.time_out", swish(w.dense("expert.time_in", embedded))))


def velocity(w, x_t, t, cache, arch, state=None, held=None):
    """v(x_t, t) [rows, action width]: rows stand after the valid prefix and see all of it and each other. A state that the prompt does not
    hold stands before them as one more row. `held` are, on a model whose chunks continue rows, the number of these and their time, which the state's row has too."""
    size, width = arch["language"], arch["expert"]["width"]
    times = [t] * len(x_t) if held is None else [held[1]] * held[0] + [t] * (len(x_t) - held[0])
    if state is not None:
        times = [t if held is None else held[1]] + times
    conditions = np.array([time_condition(w, each, arch) for each in times])
    x = w.dense("expert.action_in", x_t)
    if state is not None:
        token = w.dense("expert.state_in", state)[None]
        x = np.concatenate([token, x])
    positions = row_positions(len(cache[0][0][0]), len(x))
    for layer, (past_keys, past_values) in enumerate(cache):
        name = f"expert.blocks.{layer}"
        parts = w.dense(f"{name}.adaptive", conditions).reshape(len(x), 6, width)
        scale1, shift1, gate1, scale2, shift2, gate2 = parts.transpose(1, 0, 2)
        normed = rms(x) * scale1 + shift1
        own_keys = turned(heads_of(w.dense(f"{name}.key", normed), size["kv_heads"], size["head_dim"]), positions)
        own_values = heads_of(w.dense(f"{name}.value", normed), size["kv_heads"], size["head_dim"])
        keys = [np.concatenate(pair) for pair in zip(past_keys, own_keys)]
        values = [np.concatenate(pair) for pair in zip(past_values, own_values)]
        queries = turned(heads_of(w.dense(f"{name}.query", normed), size["heads"], size["head_dim"]), positions)
        x = x + gate1 * w.dense(f"{name}.output", grouped_attention(queries, keys, values, size))
        x = x + gate2 * mlp(w, name, rms(x) * scale2 + shift2)
    scale, shift = w.dense("expert.final.adaptive", conditions).reshape(len(x), 2, width).transpose(1, 0, 2)
    done = rms(x) * scale + shift
    return w.dense("expert.action_out", done[-len(x_t) :])


def shortest_axis(x, facts):
    """The shortest length that Gram-Schmidt divides by: of a first vector, or of a second one's part across it. Infinite without rotations."""
    shortest = math.inf
    for start in facts["action"]["rotation6d"]:
        first, second = x[:, start : start + 3], x[:, start + 3 : start + 6]
        length = np.linalg.norm(first, axis=1)
        along = (first * second).sum(axis=1) / length
        across = np.sqrt((second**2).sum(axis=1) - along**2)
        shortest = min(shortest, length.min(), across.min())
    return shortest


def compute_chunk(bundle, frames, arch, noise_of=None, prefix=(), step=STEP, seed=SEED):
    """Rows in robot units [rows, columns], clamped to their ranges, and how many values were clamped. The chunk continues the rows of
    `prefix`, in robot units."""
    facts, norm, _ = read_bundle(bundle)
    return robot_rows(compute_latent(bundle, frames, arch, noise_of, prefix, step, seed), state_of(facts), facts, norm)


def compute_latent(bundle, frames, arch, noise_of=None, prefix=(), step=STEP, seed=SEED):
    """What the flow ends at, [rows, width]."""
    facts, norm, tokenizer = read_bundle(bundle)
    state = state_of(facts)
    ids = prompt_tokens(tokenizer, INSTRUCTION, state, facts, norm)
    inputs = arch.get("inputs", {})
    per_camera = len(frames) // len(facts["cameras"])
    images = [
        load_image(frame, facts)
        for camera in views_of(facts, inputs)
        if camera is not None
        for frame in frames[camera * per_camera : (camera + 1) * per_camera]
    ]
    prefill, denoise = (Weights(bundle / facts["graphs"][graph]["file"], columns_of(arch)) for graph in ("prefill", "denoise"))
    cache = prefix_cache(prefill, images, ids, arch)
    told = any(part["kind"] in ("state_tokens", "template") for part in facts["prompt"]["parts"])

    action = facts["action"]
    x = noise(noise_of or facts["export_id"], seed, step, action["rows"], action["width"])
    times = flow_times(facts["flow"])
    kept = held_latent(prefix, state, facts, norm)
    held = (len(prefix), told_time(times[-1], inputs)) if "prefix" in action else None
    for t, after in zip(times, times[1:]):
        x[: len(kept)] = kept
        own = None if told else padded_state(state, facts, norm)
        x = x + (after - t) * velocity(denoise, x, told_time(t, inputs), cache, arch, own, held)
    x[: len(kept)] = kept
    return x
