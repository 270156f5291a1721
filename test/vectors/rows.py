"""State and rows of a model in NumPy, float64: what stands between the wire and the graphs, from the words of the manifest.

Independent of native/src. Run alone, it writes `rows/cases.json`, which native/tests/rows.rs compares the engine with:

    python3 test/vectors/rows.py            # writes
    python3 test/vectors/rows.py --check    # compares, writes nothing
"""

import json
import sys
from pathlib import Path

import numpy as np


def span(spec, stats, column, row):
    """Half of the range or the deviation, with the epsilon; and the middle or the mean."""
    epsilon = spec.get("epsilon", 1e-6)
    kind = spec["norm"]
    if kind == "none":
        return 1.0, 0.0

    def of(name):
        values = stats[name]
        return values[row][column] if isinstance(values[0], list) else values[column]

    if kind == "mean_std":
        return of("std") + epsilon, of("mean")
    low, high = (of("q01"), of("q99")) if kind == "quantile" else (of("min"), of("max"))
    half = (high - low + epsilon) / 2
    return half, low + half


def clipped(value, spec):
    return np.clip(value, spec["clip"]["min"], spec["clip"]["max"]) if "clip" in spec else value


def normalise(value, spec, stats, column):
    factor, middle = span(spec, stats, column, 0)
    return clipped((value - middle) / factor, spec)


def unnormalise(value, spec, stats, column, row):
    factor, middle = span(spec, stats, column, row)
    return clipped(value, spec) * factor + middle


# --- rotations ------------------------------------------------------------------------------------------------------------------


def matrix_of_columns(six):
    """Gram-Schmidt on the first two columns of a rotation matrix."""
    first, second = np.array(six[:3], dtype=np.float64), np.array(six[3:], dtype=np.float64)
    first = first / np.linalg.norm(first)
    second = second - first.dot(second) * first
    second = second / np.linalg.norm(second)
    return np.stack([first, second, np.cross(first, second)], axis=1)


# --- state and rows -------------------------------------------------------------------------------------------------------------


def normal_state(state, facts, norm):
    """The model's values, normalised."""
    return [normalise(value, spec, norm["state"], column) for column, (value, spec) in enumerate(zip(state, facts["state"]["columns"]))]


def robot_rows(x, state, facts, norm):
    """Latent [rows, width] to rows in robot units, absolute, clamped to their ranges, and how many values were clamped."""
    action = facts["action"]
    columns = action["columns"]
    state = [float(np.float32(value)) for value in state]
    least, most = [spec["min"] for spec in columns], [spec["max"] for spec in columns]
    rows, clamped = [], 0
    for number, latent in enumerate(x):
        row = np.array([unnormalise(latent[column], spec, norm["action"], column, number) for column, spec in enumerate(columns)])
        for column, spec in enumerate(columns):
            if spec["relative_to"] is not None:
                row[column] += state[spec["relative_to"]]
        for start in action["rotation6d"]:
            row[start : start + 6] = matrix_of_columns(row[start : start + 6])[:, :2].T.reshape(6)
        inside = row.clip(least, most)
        clamped += int((inside != row).sum())
        rows.append(inside)
    return np.array(rows), clamped


# --- cases ----------------------------------------------------------------------------------------------------------------------


def cases():
    """Two arms, position, rotation and gripper, with statistics of each row and clips."""
    draw = np.random.default_rng(17)
    names = [f"{side}_{name}" for side in ("left", "right") for name in ("x", "y", "z", "a", "b", "c", "d", "e", "f", "grip")]
    spec = lambda i: {"norm": "none"} if i % 10 in range(3, 9) else {"norm": "min_max", "epsilon": 0, "clip": {"min": -1, "max": 1}}
    columns = [spec(i) | {"name": name, "relative_to": None, "min": -1.5, "max": 1.5} for i, name in enumerate(names)]
    action = {"rows": 5, "hz": 30, "width": 21, "columns": columns, "rotation6d": [3, 13], "out_of_range": "clamp"}
    table = lambda low, high: draw.uniform(low, high, (5, 20)).round(3).tolist()
    latent = draw.normal(0, 0.6, (5, 21)).round(4)
    yield "rotation6d, absolute", action, {"min": table(-0.6, -0.2), "max": table(0.2, 0.6)}, latent


def written():
    draw = np.random.default_rng(18)
    state = np.concatenate([draw.uniform(-0.4, 0.4, 3), [0.6, 0.9, 0.1, -0.7, 0.5, 0.2], [0.3]] * 2)
    state[10:19] = np.concatenate([draw.uniform(-0.4, 0.4, 3), [-0.2, 0.1, -0.9, 0.4, -0.8, 0.3]])
    state = [float(np.float32(value)) for value in state.round(4)]
    return {
        "provenance": f"test/vectors/rows.py, float64, numpy {np.__version__}",
        "state": state,
        "rows": [
            {"name": name, "action": action, "stats": stats, "latent": latent.tolist()}
            | dict(zip(("expected", "clamped"), robot_rows(latent, state, {"action": action}, {"action": stats})))
            for name, action, stats, latent in cases()
        ],
    }


def main():
    path = Path(__file__).parent / "rows" / "cases.json"
    whole = json.loads(json.dumps(written(), default=lambda array: array.tolist()), parse_float=lambda text: round(float(text), 9))
    if "--check" in sys.argv:
        return 0 if json.loads(path.read_text()) == whole else 1
    path.parent.mkdir(exist_ok=True)
    lines = {name: [json.dumps(case) for case in whole.pop(name)] for name in ("rows",)}
    tail = ",\n".join(f'"{name}": [\n' + ",\n".join(cases) + "\n]" for name, cases in lines.items())
    path.write_text(json.dumps(whole)[:-1] + ",\n" + tail + "}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
