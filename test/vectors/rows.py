"""State and rows of a model in NumPy, float64: what stands between the wire and the graphs, from the words of the manifest.

Independent of native/src: rigid transforms are matrices of 4 x 4, a quaternion turns the axes by Hamilton's product, and the quaternion of
a matrix is an eigenvector (Bar-Itzhack 2000). Run alone, it writes `rows/cases.json`, which native/tests/rows.rs compares the engine with:

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


def hamilton(a, b):
    """w, x, y, z."""
    scalar = a[0] * b[0] - a[1:].dot(b[1:])
    return np.concatenate([[scalar], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])


def matrix_of_quaternion(q):
    q = np.array(q, dtype=np.float64) / np.linalg.norm(q)
    back = q * [1, -1, -1, -1]
    return np.stack([hamilton(hamilton(q, np.concatenate([[0], axis])), back)[1:] for axis in np.eye(3)], axis=1)


def quaternion_of_matrix(m):
    """w, x, y, z of either sign."""
    k = np.array([
        [m[0, 0] - m[1, 1] - m[2, 2], m[1, 0] + m[0, 1], m[2, 0] + m[0, 2], m[2, 1] - m[1, 2]],
        [m[1, 0] + m[0, 1], m[1, 1] - m[0, 0] - m[2, 2], m[2, 1] + m[1, 2], m[0, 2] - m[2, 0]],
        [m[2, 0] + m[0, 2], m[2, 1] + m[1, 2], m[2, 2] - m[0, 0] - m[1, 1], m[1, 0] - m[0, 1]],
        [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], m[0, 0] + m[1, 1] + m[2, 2]],
    ])
    _, vectors = np.linalg.eigh(k / 3)
    x, y, z, w = vectors[:, -1]
    return np.array([w, x, y, z])


def numbers_of(form):
    return 4 if form.startswith("quaternion") else 6


def matrix_of(form, values):
    if form == "rotation6d_rows":
        return matrix_of_columns(values).T
    if form == "quaternion_wxyz":
        return matrix_of_quaternion(values)
    if form == "quaternion_xyzw":
        return matrix_of_quaternion(np.roll(values, 1))
    return matrix_of_columns(values)


def form_of(form, matrix, near):
    if form == "rotation6d_rows":
        return matrix[:2].reshape(6)
    q = quaternion_of_matrix(matrix)
    q = q if form == "quaternion_wxyz" else np.roll(q, -1)
    near = near or ([1, 0, 0, 0] if form == "quaternion_wxyz" else [0, 0, 0, 1])
    return -q if q.dot(near) < 0 else q


# --- state and rows -------------------------------------------------------------------------------------------------------------


def normal_state(state, facts, norm):
    """The policy's values, normalised."""
    columns = facts["state"]["columns"]
    rotations = {one["at"]: one for one in facts["state"].get("rotations", [])}
    values, column = [], 0
    while column < len(columns):
        one = rotations.get(column)
        if one is None:
            told = [state[column]]
        else:
            told = form_of(one["form"], matrix_of_columns(state[column : column + 6]), one.get("near"))
        values += [normalise(value, columns[column + i], norm["state"], column + i) for i, value in enumerate(told)]
        column += 1 if one is None else 6
    return values


def transform(position, rotation):
    whole = np.eye(4)
    whole[:3, :3], whole[:3, 3] = rotation, position
    return whole


def robot_rows(x, state, facts, norm):
    """Latent [rows, width] to rows in robot units, absolute, clamped to their ranges, and how many values were clamped."""
    action = facts["action"]
    columns = action["columns"]
    state = [float(np.float32(value)) for value in state]
    forms = {one["at"]: one["form"] for one in action.get("rotations", [])}
    least, most = [spec["min"] for spec in columns], [spec["max"] for spec in columns]
    rows, clamped = [], 0
    for number, latent in enumerate(x):
        row, matrices, place, column = np.zeros(len(columns)), {}, 0, 0
        while column < len(columns):
            form = forms.get(column)
            count, wide = (1, 1) if form is None else (numbers_of(form), 6)
            for i in range(count):
                row[column + i] = unnormalise(latent[place + i], columns[column + i], norm["action"], column + i, number)
            place, column = place + count, column + wide
        for column, spec in enumerate(columns):
            start = spec["relative_to"]
            if spec.get("velocity"):
                row[column] = row[column] / action["hz"] + (rows[-1][column] if rows else state[start])
            elif start is not None:
                row[column] += state[start]
        for start in action["rotation6d"]:
            form = forms.get(start, "rotation6d")
            matrices[start] = matrix_of(form, row[start : start + numbers_of(form)])
        for pose in action.get("poses", []):
            at, turned = pose["state_position"], pose["state_rotation"]
            current = transform(state[at : at + 3], matrix_of_columns(state[turned : turned + 6]))
            p, r = pose["position"], pose["rotation"]
            whole = current @ transform(row[p : p + 3], matrices[r])
            row[p : p + 3], matrices[r] = whole[:3, 3], whole[:3, :3]
        for start, matrix in matrices.items():
            row[start : start + 6] = matrix[:, :2].T.reshape(6)
        inside = row.clip(least, most)
        clamped += int((inside != row).sum())
        rows.append(inside)
    return np.array(rows), clamped


# --- cases ----------------------------------------------------------------------------------------------------------------------

FORMS = ["rotation6d", "rotation6d_rows", "quaternion_wxyz", "quaternion_xyzw"]


def cases():
    """Two arms, position, rotation and gripper, in every form, absolute and relative to the state's pose; and velocities."""
    draw = np.random.default_rng(17)
    names = [f"{side}_{name}" for side in ("left", "right") for name in ("x", "y", "z", "a", "b", "c", "d", "e", "f", "grip")]
    for form in FORMS:
        for relative in (False, True):
            spec = lambda i: {"norm": "none"} if i % 10 in range(3, 9) else {"norm": "min_max", "epsilon": 0, "clip": {"min": -1, "max": 1}}
            columns = [spec(i) | {"name": name, "relative_to": None, "min": -1.5, "max": 1.5} for i, name in enumerate(names)]
            other = [] if form == "rotation6d" else [{"at": at, "form": form} for at in (3, 13)]
            poses = [{"position": p, "rotation": p + 3, "state_position": p, "state_rotation": p + 3} for p in (0, 10)] if relative else []
            rows, width = 5, 20 - (4 if numbers_of(form) == 4 else 0)
            action = {"rows": rows, "hz": 30, "width": width + 1, "columns": columns, "rotation6d": [3, 13], "out_of_range": "clamp"}
            action |= ({"rotations": other} if other else {}) | ({"poses": poses} if poses else {})
            table = lambda low, high: draw.uniform(low, high, (rows, 20)).round(3).tolist()
            latent = draw.normal(0, 0.6, (rows, width + 1)).round(4)
            yield f"{form}, {'relative' if relative else 'absolute'}", action, {"min": table(-0.6, -0.2), "max": table(0.2, 0.6)}, latent
    columns = [{"norm": "mean_std", "name": f"joint_{i}", "relative_to": i, "min": -1.5, "max": 1.5} for i in range(4)]
    for column in columns[:3]:
        column["velocity"] = True
    action = {"rows": 12, "hz": 10, "width": 4, "columns": columns, "rotation6d": [], "out_of_range": "clamp"}
    latent = draw.normal(0.5, 1, (12, 4)).round(4)
    # One that runs into its end, stays there, and comes back as soon as its velocity turns.
    latent[:, 1] = [5, 5, 5, 5, 5, 5, -1, -1, -1, 2, 2, 2]
    yield "velocities", action, {"mean": [0.1, 0, -0.2, 0.3], "std": [1, 0.9, 2, 0.1]}, latent


def written():
    draw = np.random.default_rng(18)
    state = np.concatenate([draw.uniform(-0.4, 0.4, 3), [0.6, 0.9, 0.1, -0.7, 0.5, 0.2], [0.3]] * 2)
    state[10:19] = np.concatenate([draw.uniform(-0.4, 0.4, 3), [-0.2, 0.1, -0.9, 0.4, -0.8, 0.3]])
    state = [float(np.float32(value)) for value in state.round(4)]
    facts = {"columns": [{"name": f"s{i}", "norm": "none"} for i in range(20)], "width": 20}
    near = {"quaternion_wxyz": [0, 0.2, -1, 0], "quaternion_xyzw": None, "rotation6d_rows": None}
    read = [
        {"rotations": [{"at": 3, "form": form} | ({"near": near[form]} if near[form] else {}), {"at": 13, "form": form}]} for form in FORMS[1:]
    ]
    return {
        "provenance": f"test/vectors/rows.py, float64, numpy {np.__version__}",
        "state": state,
        "read": [one | {"expected": normal_state(state, {"state": facts | one}, {"state": {}})} for one in read],
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
    lines = {name: [json.dumps(case) for case in whole.pop(name)] for name in ("read", "rows")}
    tail = ",\n".join(f'"{name}": [\n' + ",\n".join(cases) + "\n]" for name, cases in lines.items())
    path.write_text(json.dumps(whole)[:-1] + ",\n" + tail + "}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
