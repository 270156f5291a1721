"""The files of golden vectors: `parity/chunk.json` and its like."""

import json

import numpy as np
import onnx
import PIL
from observed import INSTRUCTION, SEED


def provenance(script):
    return f"test/vectors/{script}, float64, numpy {np.__version__}, pillow {PIL.__version__}, onnx {onnx.__version__}"


def vectors_of(bundle):
    """The file in the model's parity folder."""
    facts = json.loads((bundle / "manifest.json").read_text())
    if "compute" in facts:
        return f"compute-{facts['compute']}.json"
    return f"{facts['weights']}.json" if "weights" in facts else "chunk.json"


def write_episode(file, observations, source, seed=SEED):
    """`chunk.json`, `int8.json` and their like: (frames, state, step, rows, cache_reset) of each observation, and the rows that it continues
    if there are some; a row of numbers a line."""
    parts = []
    for frames, state, step, rows, reset, *prefix in observations:
        facts = {"frames": frames, "state": state, "step": step, "cache_reset": reset} | ({"prefix": prefix[0]} if prefix else {})
        lines = ",\n".join("    " + json.dumps([round(value, 9) for value in row]) for row in rows)
        parts.append("  {" + json.dumps(facts)[1:-1] + ',\n   "actions": [\n' + lines + "\n   ]}")
    head = json.dumps({"instruction": INSTRUCTION, "seed": seed, "provenance": source}, indent=1)
    file.write_text(head[:-2] + ',\n "observations": [\n' + ",\n".join(parts) + "\n ]\n}\n")
