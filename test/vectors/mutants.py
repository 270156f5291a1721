"""What must not pass: chunks of the flow-vla family computed with one mistake each, which the vectors have to notice."""

import contextlib
import math

import flow
import numpy as np
import observed
import transformer


@contextlib.contextmanager
def changed(functions):
    """Has every module that uses these functions use the given ones."""
    kept = [(module, name, getattr(module, name)) for module in (observed, transformer, flow) for name in functions if hasattr(module, name)]
    assert {name for _, name, _ in kept} == set(functions), "a mistake is made in a function that is there"
    for module, name, _ in kept:
        setattr(module, name, functions[name])
    try:
        yield
    finally:
        for module, name, right in kept:
            setattr(module, name, right)


def padded(tokenizer, instruction, state, facts, norm, right=observed.prompt_tokens):
    """The prompt with its padding taken for tokens."""
    ids = right(tokenizer, instruction, state, facts, norm)
    return ids + [facts["prompt"]["pad_id"]] * (facts["prompt"]["tokens_max"] - len(ids))


def causal(queries, keys, values, size):
    """Every token sees itself and what stands before it only."""
    behind = len(keys[0]) - len(queries[0])
    out = []
    for head, rows in enumerate(queries):
        k, v = keys[transformer.key_head(head, size)], values[transformer.key_head(head, size)]
        scale = math.sqrt(size["head_dim"])
        out.append(np.array([transformer.softmax_mix(k[: behind + i + 1] @ row / scale, v[: behind + i + 1]) for i, row in enumerate(rows)]))
    return np.concatenate(out, axis=1)


MUTANTS = {
    "padding is seen": {"prompt_tokens": padded},
    "attention is causal": {"grouped_attention": causal},
    "rows one position too high": {"row_positions": lambda prefix, rows: range(prefix + 1, prefix + 1 + rows)},
    "rows start at position 0": {"row_positions": lambda prefix, rows: range(rows)},
    "rows have one position": {"row_positions": lambda prefix, rows: [prefix] * rows},
    "rotation backwards": {"rope": lambda vector, position, rope=transformer.rope: rope(vector, -position)},
    "no rotation": {"rope": lambda vector, position: vector},
    "key heads dealt round": {"key_head": lambda head, size: head % size["kv_heads"]},
    "erf instead of tanh in GELU": {"gelu": np.vectorize(lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))))},
}

# Mutants of bundles whose inputs have this.
INPUT_MUTANTS = {
    "time_buckets": {"time is not rounded down": {"told_time": lambda t, inputs: float(np.float32(t))}},
    "views": {"views the other way round": {"views_of": lambda facts, inputs, right=observed.views_of: right(facts, inputs)[::-1]}},
}

# Mutants of bundles whose chunks continue rows.
PREFIX_MUTANTS = {
    "the prefix is absolute": {"held_latent": lambda prefix, state, facts, norm, right=observed.held_latent: right(prefix, [0.0] * len(state), facts, norm)},
    "the prefix has the time of the rows": {"velocity": lambda *given, right=flow.velocity: right(*given[:-1], None)},
    "one row of it too few": {"velocity": lambda *given, right=flow.velocity: right(*given[:-1], (given[-1][0] - 1, given[-1][1]))},
}


def mutants(bundle, frames, arch, rows, tolerance, prefix, seed):
    """Computes the chunk, the one with a prefix if there is one, with one mistake at a time; 0 when each of them would be noticed."""
    missed = 0
    own = [mutants for key, mutants in INPUT_MUTANTS.items() if key in arch.get("inputs", {})]
    for name, changes in [pair for mutants in [MUTANTS, *own, PREFIX_MUTANTS if prefix else {}] for pair in mutants.items()]:
        step = observed.STEP + 1 if prefix else observed.STEP
        with changed(changes):
            wrong, _ = flow.compute_chunk(bundle, frames, arch, prefix=prefix, step=step, seed=seed)
        difference = np.abs(wrong - rows).max()
        missed += difference < 3 * tolerance
        print(f"{name:30} {difference:.2e}")
    return 1 if missed else 0
