"""Golden vectors of the world-action family: a whole episode in NumPy, float64, from a built bundle's own weights.

Independent of src/bundle and of the graphs' structure, as flow_vla.py beside it, whose head says how the scripts are used. There is no
cache here: every observation computes all frames that its episode remembers anew, from their pixels, token by token and one head at a
time. So a wrong mask, a block that is kept at the wrong place, a stale row behind the valid ones or a window that does not start
anew shows as a difference.

    python3 test/vectors/world_action.py models/picasso-yam --draw
    python3 test/vectors/world_action.py models/picasso-yam dist/models/picasso-yam [--check | --mutants]
"""

import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np
import observed
import vector_file
from noise import noise
from observed import STATES
from rows import robot_rows
from transformer import gelu, rms, rope, softmax_mix, swish
from weights import Weights

# Moments that frames are drawn for; an episode goes through them again and again.
MOMENTS = 5


# --- an episode -----------------------------------------------------------------------------------------------------------------


def steps_of(memory):
    """Enough observations for the window to fill, start anew and grow again."""
    return (memory["window"] - memory["first"]) // memory["later"] + 3


def episode(facts):
    """(frames, state) of each observation: another moment for each frame, the arm a little further each time."""
    moment, out = 0, []
    for step in range(steps_of(facts["memory"])):
        count = facts["frames"]["first" if step == 0 else "later"]
        moments = [(moment + i) % MOMENTS for i in range(count)]
        moment += count
        frames = [f"{camera}.jpg" if m == 0 else f"{camera}-{m}.jpg" for camera in facts["cameras"] for m in moments]
        state = [round(value + 0.01 * step * (-1) ** i, 6) for i, value in enumerate(STATES[facts["state"]["kind"]])]
        out.append((frames, state))
    return out


def remembered(facts, images):
    """What each observation is computed from: the (images [camera][frame], latent frames) that its episode has kept and what it adds, and
    whether the window started anew. images: per observation [camera][frame]."""
    memory, frames = facts["memory"], facts["frames"]
    kept, held, out = [], 0, []
    for step, seen in enumerate(images):
        reset = False
        if step == 0:
            added = (seen, memory["first"])
        elif held + memory["later"] <= memory["window"]:
            added = (seen, memory["later"])
        else:
            reset, kept, held = True, [], 0
            added = ([camera[-frames["first"] :] for camera in seen], memory["first"])
        kept = kept + [added]
        held += added[1]
        out.append((list(kept), reset))
    return out


# --- the model ------------------------------------------------------------------------------------------------------------------


def encode(w, images, latents, facts, size):
    """Frames [camera][frame] of one observation to `latents` latent frames [latents][token, channels], cameras one after another."""
    covered = facts["frames"]["later"] // facts["memory"]["later"]
    kernel, bias, patch = w["world.encode.weight"], w["world.encode.bias"], size["patch"]
    out = []
    for latent in range(latents):
        tokens = []
        for camera in images:
            share = len(camera) // latents
            frames = camera[latent * share : (latent + 1) * share]
            stack = np.concatenate(frames * (covered // share))
            for top in range(0, stack.shape[1], patch):
                for left in range(0, stack.shape[2], patch):
                    tokens.append((kernel * stack[None, :, top : top + patch, left : left + patch]).sum(axis=(1, 2, 3)) + bias)
        out.append(np.array(tokens))
    return out


def condition(w, t, size):
    half = size["time_width"] // 2
    periods = [4e-2 * (4.0 / 4e-2) ** (i / (half - 1)) for i in range(half)]
    angles = np.array([2 * math.pi * t / period for period in periods])
    embedded = np.concatenate([np.sin(angles), np.cos(angles)])
    return swish(w.dense("world.time_out", swish(w.dense("world.time_in", embedded))))


def heads(flat, size):
    return flat.reshape(len(flat), size["heads"], size["head_dim"])


def turn(vectors, positions):
    """[tokens, heads, D], each head's vector rotated by its token's position."""
    return np.array([[rope(head, position) for head in token] for token, position in zip(vectors, positions)])


def attend(queries, keys, values, sees, size):
    """Per query token, over the key tokens that it sees (indices)."""
    out = np.empty_like(queries)
    for token, head in np.ndindex(queries.shape[:2]):
        seen = sees(token)
        scores = keys[seen, head] @ queries[token, head] / math.sqrt(size["head_dim"])
        out[token, head] = softmax_mix(scores, values[seen, head])
    return out.reshape(len(queries), -1)


def transform(w, x, positions, cond, past, sees, text, size, keep=None):
    """All blocks. past: per layer the (keys, values) before the own ones; sees: query token → indices into past and own together."""
    for layer in range(size["layers"]):
        name = f"world.blocks.{layer}"
        scale1, shift1, gate1, scale2, shift2, gate2 = w.dense(f"{name}.adaptive", cond).reshape(6, size["width"])
        normed = rms(x) * scale1 + shift1
        keys = turn(heads(w.dense(f"{name}.key", normed), size), positions)
        values = heads(w.dense(f"{name}.value", normed), size)
        if keep is not None:
            keep[layer].append((keys, values))
            if layer == size["layers"] - 1:
                break  # nobody reads the last layer's output
        queries = turn(heads(w.dense(f"{name}.query", normed), size), positions)
        all_keys = np.concatenate([k for k, _ in past[layer]] + [keys])
        all_values = np.concatenate([v for _, v in past[layer]] + [values])
        x = x + gate1 * w.dense(f"{name}.output", attend(queries, all_keys, all_values, sees, size))
        asking = heads(w.dense(f"{name}.text.query", rms(x) * w[f"{name}.text.norm.scale"]), size)
        told, said = heads(w.dense(f"{name}.text.key", text), size), heads(w.dense(f"{name}.text.value", text), size)
        everything = np.arange(len(text))
        x = x + w.dense(f"{name}.text.output", attend(asking, told, said, lambda token: everything, size))
        fed = rms(x) * scale2 + shift2
        x = x + gate2 * w.dense(f"{name}.mlp.down", gelu(w.dense(f"{name}.mlp.gate", fed)) * w.dense(f"{name}.mlp.up", fed))
    return x


def read_frames(reader, history, text, facts, size):
    """Keys and values per layer of every latent frame of the history, oldest first. A frame sees itself and what came before it."""
    past = [[] for _ in range(size["layers"])]
    cond = condition(reader, facts["flow"]["t_end"], size)
    frame = 0
    for images, latents in history:
        for latent in encode(reader, images, latents, facts, size):
            x = reader.dense("world.latent_in", latent) + reader["world.places"]
            behind = sum(len(keys) for keys, _ in past[0])
            own = [[] for _ in range(size["layers"])]
            seen = np.arange(behind + len(x))
            transform(reader, x, [frame_position(frame)] * len(x), cond, past, lambda token, seen=seen: seen, text, size, own)
            for layer in range(size["layers"]):
                past[layer] += own[layer]
            frame += 1
    return past, frame


def frame_position(frame):
    return frame


def row_positions(frames, rows, later):
    return [frames + row / rows * later for row in range(rows)]


def velocities(w, x, z, t, state, past, frames, text, facts, size):
    """Velocities of the rows [rows, width] and of the latent frames to come [tokens, channels]."""
    memory = facts["memory"]
    cond = condition(w, t, size)
    video = w.dense("world.latent_in", z) + np.concatenate([w["world.places"]] * memory["later"])
    told = w.dense("world.state_in", state)[None]
    acting = w.dense("world.action_in", x) + w["world.rows"]
    tokens = np.concatenate([video, told, acting])
    ahead = [frame_position(frames + token // memory["tokens"]) for token in range(len(z))]
    positions = ahead + [frames] + row_positions(frames, len(x), memory["later"])
    seen = np.arange(sum(len(keys) for keys, _ in past[0]) + len(tokens))
    out = transform(w, tokens, positions, cond, past, lambda token: seen, text, size)
    scale, shift = w.dense("world.final.adaptive", cond).reshape(2, size["width"])
    normed = rms(out) * scale + shift
    return w.dense("world.action_out", normed[-len(x) :]), w.dense("world.latent_out", normed[: len(z)])


def guided(conditional, unconditional, what, guidance):
    if guidance is None or what not in guidance["apply"]:
        return conditional
    return unconditional + guidance["scale"] * (conditional - unconditional)


def compute_episode(bundle, parity, arch):
    """Per observation: rows in robot units, values clamped, whether the window started anew."""
    facts, norm, tokenizer = observed.read_bundle(bundle)
    size, guidance, flow, action = arch["transformer"], facts["guidance"], facts["flow"], facts["action"]
    side_by_side = {"world": dict.fromkeys(("query", "key", "value"), size["heads"] * size["head_dim"])}
    graphs = {name: Weights(bundle / graph["file"], side_by_side) for name, graph in facts["graphs"].items()}
    # Keys and values of the text are weights of the readers alone: the flow reads what they have made of the text.
    graphs["denoise"].tensors |= {name: values for name, values in graphs["prefill"].tensors.items() if ".text." in name}
    embedding = graphs["prefill"]["language.embedding"]
    observations = episode(facts)
    images = [
        [
            [observed.load_image(parity / name, facts) for name in frames[camera * share : (camera + 1) * share]]
            for share in [len(frames) // len(facts["cameras"])]
            for camera in range(len(facts["cameras"]))
        ]
        for frames, _ in observations
    ]
    tokens = facts["memory"]["later"] * facts["memory"]["tokens"]
    times = observed.flow_times(flow)
    out = []
    for step, ((_, state), (history, reset)) in enumerate(zip(observations, remembered(facts, images))):
        branches = []
        for instruction in [observed.INSTRUCTION] + ([] if guidance is None else [""]):
            text = embedding[observed.prompt_tokens(tokenizer, instruction, state, facts, norm)]
            # The weights of both readers are the same numbers.
            branches.append((*read_frames(graphs["prefill"], history, text, facts, size), text))
        count = action["rows"] * action["width"]
        drawn = noise(facts["export_id"], observed.SEED, step, 1, count + tokens * size["channels"])[0]
        x = drawn[:count].reshape(action["rows"], action["width"])
        z = drawn[count:].reshape(tokens, size["channels"])
        told = observed.padded_state(state, facts, norm)
        for t, after in zip(times, times[1:]):
            both = [velocities(graphs["denoise"], x, z, float(np.float32(t)), told, *branch[:2], branch[2], facts, size) for branch in branches]
            (vx, vz), (ux, uz) = both[0], both[-1]
            x = x + (after - t) * guided(vx, ux, "action", guidance)
            z = z + (after - t) * guided(vz, uz, "video", guidance)
        rows, clamped = robot_rows(x, state, facts, norm)
        out.append((rows, clamped, reset))
    return out


# --- what must not pass ---------------------------------------------------------------------------------------------------------


def forgetful(facts, images, right=remembered):
    """Only what the observation itself shows."""
    return [(history[-1:], reset) for history, reset in right(facts, images)]


def endless(facts, images):
    """A window that never starts anew."""
    memory = facts["memory"]
    kept, out = [], []
    for step, seen in enumerate(images):
        kept = kept + [(seen, memory["first" if step == 0 else "later"])]
        out.append((list(kept), False))
    return out


def from_first_frame(facts, images, right=remembered):
    """A window that starts anew from the oldest of the frames."""
    first = facts["frames"]["first"]
    return [
        ([([camera[:first] for camera in images[step]], facts["memory"]["first"])] if reset else history, reset)
        for step, (history, reset) in enumerate(right(facts, images))
    ]


MUTANTS = {
    "nothing is remembered": {"remembered": forgetful},
    "the window never ends": {"remembered": endless},
    "it starts anew from the oldest frame": {"remembered": from_first_frame},
    "frames have one position": {"frame_position": lambda frame: 0},
    "rows have one position": {"row_positions": lambda frames, rows, later: [frames] * rows},
    "no guidance": {"guided": lambda conditional, unconditional, what, guidance: conditional},
    "guidance of the wrong sign": {
        "guided": lambda c, u, what, guidance, right=guided: right(2 * u - c, u, what, guidance) if what in guidance["apply"] else c
    },
}


def largest(one, other):
    return max(np.abs(a[0] - b[0]).max() for a, b in zip(one, other))


def mutants(bundle, parity, arch, right, tolerance):
    missed = 0
    for name, changes in MUTANTS.items():
        kept = {function: globals()[function] for function in changes}
        globals().update(changes)
        difference = largest(compute_episode(bundle, parity, arch), right)
        globals().update(kept)
        # With one frame a camera the oldest is the last.
        same = name.endswith("oldest frame") and json.loads((bundle / "manifest.json").read_text())["frames"]["later"] == 1
        missed += difference < 3 * tolerance and not same
        print(f"{name:38} {difference:.2e}")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description="Golden vectors of a world-action bundle.")
    parser.add_argument("model", type=Path, help="models/<name>")
    parser.add_argument("bundle", type=Path, nargs="?", help="the built bundle; not needed with --draw")
    parser.add_argument("--check", action="store_true", help="compare with the stored episode, write nothing")
    parser.add_argument("--mutants", action="store_true", help="show what wrong windows, positions and guidance would change")
    parser.add_argument("--draw", action="store_true", help="draw the frames and write an episode without rows")
    given = parser.parse_args()
    parity = given.model / "parity"
    facts = json.loads((given.model / "model.json").read_text())
    if given.draw:
        parity.mkdir(exist_ok=True)
        for moment in range(MOMENTS):
            observed.draw_frames(parity, facts["cameras"], moment)
        rows = [[0.0] * len(facts["action"]["columns"])] * facts["action"]["rows"]
        observations = [(frames, state, step, rows, False) for step, (frames, state) in enumerate(episode(facts))]
        vector_file.write_episode(parity / "chunk.json", observations, "frames only; run world_action.py on a built bundle")
        return 0
    if given.bundle is None:
        parser.error("the built bundle is missing")

    vectors = parity / vector_file.vectors_of(given.bundle)
    computed = compute_episode(given.bundle, parity, facts["architecture"])
    for step, (rows, clamped, reset) in enumerate(computed):
        spread = rows.std(axis=0).mean()
        print(f"step {step}: {rows.shape[0]} x {rows.shape[1]} rows, {clamped} of {rows.size} clamped, spread {spread:.3f}{', anew' if reset else ''}")
    if given.mutants:
        tolerance = json.loads((given.bundle / "manifest.json").read_text())["parity"]["tolerance"]
        return mutants(given.bundle, parity, facts["architecture"], computed, tolerance)
    if given.check:
        stored = json.loads(vectors.read_text())["observations"]
        difference = max(np.abs(np.array(one["actions"]) - other[0]).max() for one, other in zip(stored, computed))
        print(f"largest difference from {vectors}: {difference:.2e}")
        return 0 if difference < 1e-6 else 1
    observations = [
        (frames, state, step, rows.tolist(), reset)
        for step, ((frames, state), (rows, _, reset)) in enumerate(zip(episode(facts), computed))
    ]
    vector_file.write_episode(vectors, observations, vector_file.provenance("world_action.py"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
