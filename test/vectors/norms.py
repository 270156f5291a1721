"""Normalised states, their bins, and rows back in robot units, computed by the publishers' own code:

- LeRobot 0.6.1 `processor/normalize_processor.py`, NormalizerProcessorStep and UnnormalizerProcessorStep, in float32;
- openpi (rlinf-openpi 0.1.1) `transforms.py`, Normalize and Unnormalize, in float64, as its norm_stats.json are;
- MolmoAct2 (in LeRobot 0.6.1) `molmoact2_hf_model/modeling_molmoact2.py`, _FeatureNormalizer, in float32;
- GR00T N1.7 (in LeRobot 0.6.1) `policies/groot/processor_groot.py`, _min_max_norm and _unnormalize_min_max, in float32.

Writes `text/norms.json`, which native/tests/norms.rs compares the engine with, bit by bit. With a Python that has LeRobot:

    python norms.py OPENPI_SITE_PACKAGES

The classes of openpi and MolmoAct2, and the functions of GR00T, are taken out of their files, because the files import more than is needed.
"""

import ast
import dataclasses
import importlib.metadata
import json
import sys
from pathlib import Path

import lerobot
import numpy as np
import torch
from lerobot.configs.types import FeatureType, NormalizationMode, PolicyFeature
from lerobot.processor.normalize_processor import NormalizerProcessorStep, UnnormalizerProcessorStep

LEROBOT = Path(lerobot.__file__).parent
OPENPI = Path(sys.argv[1]) / "openpi"


def taken(path, names, scope):
    """Top-level classes and functions, or functions inside others, of a file, run in `scope`."""
    tree = ast.parse(path.read_text())
    found = {node.name: node for node in ast.walk(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    module = ast.Module([found[name] for name in names], [])
    exec(compile(module, str(path), "exec"), scope)
    return scope


class AnyType:
    """For annotations that are never looked at."""

    def __getattr__(self, name):
        return AnyType()

    def __getitem__(self, name):
        return AnyType()

    def __or__(self, other):
        return AnyType()

    __ror__ = __or__


def apply_tree(data, stats, function, strict):
    return {key: function(value, stats[key]) for key, value in data.items()}


openpi = taken(
    OPENPI / "transforms.py",
    ["pad_to_dim", "Normalize", "Unnormalize"],
    {"dataclasses": dataclasses, "np": np, "DataTransformFn": object, "at": AnyType(), "NormStats": AnyType(), "DataDict": AnyType(),
     "apply_tree": apply_tree, "_assert_quantile_stats": lambda stats: None},
)
molmo = taken(
    LEROBOT / "policies/molmoact2/molmoact2_hf_model/modeling_molmoact2.py",
    ["_to_array", "_to_mask", "_FeatureNormalizer"],
    {"np": np, "torch": torch, "Any": object, "Optional": AnyType(), "Mapping": dict, "Sequence": list},
)
groot = taken(
    LEROBOT / "policies/groot/processor_groot.py",
    ["_align_vec", "_min_max_norm", "_unnormalize_min_max"],
    {"np": np, "torch": torch, "Any": object, "obs": {}},
)

MODES = {"mean_std": "MEAN_STD", "min_max": "MIN_MAX", "quantile": "QUANTILES", "none": "IDENTITY"}


def by_lerobot(norm, stats, x, y):
    key = "observation.state"
    feature = {key: PolicyFeature(FeatureType.STATE, (1,))}
    mode = {FeatureType.STATE: NormalizationMode(MODES[norm])}
    tensors = {key: {name: torch.tensor([value], dtype=torch.float32) for name, value in stats.items()}}
    steps = [step(features=feature, norm_map=mode, stats=tensors) for step in (NormalizerProcessorStep, UnnormalizerProcessorStep)]
    state, action = [torch.tensor(values, dtype=torch.float32)[:, None] for values in (x, y)]
    model = steps[0]._normalize_observation({key: state}, inverse=False)[key]
    robot = steps[1]._normalize_observation({key: action}, inverse=True)[key]
    return model[:, 0].numpy(), robot[:, 0].numpy()


@dataclasses.dataclass
class Stats:
    mean: np.ndarray
    std: np.ndarray
    q01: np.ndarray
    q99: np.ndarray


def by_openpi(norm, stats, x, y):
    arrays = Stats(**{name: np.array([stats.get(name, 0.0)]) for name in ("mean", "std", "q01", "q99")})
    quantiles = norm == "quantile"
    into = openpi["Normalize"]({"state": arrays}, use_quantiles=quantiles)
    back = openpi["Unnormalize"]({"state": arrays}, use_quantiles=quantiles)
    return into({"state": x[:, None]})["state"][:, 0], back({"state": y[:, None]})["state"][:, 0]


def by_molmoact2(norm, stats, x, y):
    mode = {"quantile": "q01_q99"}.get(norm, norm)
    one = molmo["_FeatureNormalizer"].from_stats({name: [value] for name, value in stats.items()}, mode)
    return one.normalize(x[:, None])[:, 0], one.unnormalize(y[:, None])[:, 0]


def by_groot(norm, stats, x, y):
    low, high = (np.float32([stats[name]]) for name in ("min", "max"))

    class Step:
        normalize_min_max, clip_outliers = True, True
        stats = {"state": {"min": low, "max": high}}

    groot["self"] = Step
    model = groot["_min_max_norm"](torch.tensor(x)[:, None], "state")[:, 0].numpy()
    return model, groot["_unnormalize_min_max"](y[:, None], low, high)[:, 0]


#: publisher: (its code, what the manifest says, the norms)
CLIP = {"clip": {"min": -1, "max": 1}}
PUBLISHERS = {
    "lerobot": (by_lerobot, {"epsilon": 1e-8, "epsilon_rule": "zero_range"}, ["mean_std", "min_max", "quantile", "none"]),
    "openpi": (by_openpi, {}, ["mean_std", "quantile"]),
    "molmoact2": (by_molmoact2, {"epsilon_rule": "at_least"}, ["mean_std", "min_max", "quantile"]),
    "groot": (by_groot, {"epsilon": 0, "epsilon_rule": "at_least"}, ["min_max"]),
}


def statistics(norm, random, flat):
    """Of one column; `flat`: its range or deviation is 0."""
    low, spread = random.uniform(-300, 300), 0.0 if flat else float(np.exp(random.uniform(-6, 6)))
    first, second = np.float32(low), np.float32(np.float32(low) + np.float32(spread))
    if norm == "mean_std":
        return {"mean": float(first), "std": spread and float(np.float32(spread))}
    names = ("min", "max") if norm == "min_max" else ("q01", "q99")
    return {names[0]: float(first), names[1]: float(second)}


def main():
    random = np.random.default_rng(32)
    edges = np.linspace(-1, 1, 257)[:-1]
    cases = []
    for name, (code, how, norms) in PUBLISHERS.items():
        for norm in norms:
            for flat in (False, False, False, True):
                stats = {} if norm == "none" else statistics(norm, random, flat)
                if name == "openpi" and not flat:
                    stats = {key: value + random.uniform(0, 1e-9) for key, value in stats.items()}
                if name == "molmoact2" and norm == "quantile":
                    # Flat twice: by the ends, and by the quantiles alone.
                    stats |= {"min": stats["q01"], "max": stats["q99"] + (0 if flat else 1)}
                values = list(stats.values())
                low, span = (values[0], values[1] - values[0] if norm != "mean_std" else values[1]) if values else (-1.0, 2.0)
                # Every bin's edge and its neighbours, whose bin depends on how the arithmetic rounds; and values far out.
                near = np.float32(low + (edges[::16] + 1) / 2 * (span or 1e-3))
                x = np.concatenate([near, np.nextafter(near, np.float32(9e9)), np.nextafter(near, np.float32(-9e9)),
                                    np.float32([low, low - 10 * span - 1, low + 11 * span + 1])]).astype(np.float32)
                y = np.concatenate([np.float32(random.normal(size=24)), np.float32([-1, 0, 1, 1.25, -3])])
                clip = CLIP if name == "groot" or (name == "molmoact2" and norm != "mean_std") else {}
                model, robot = code(norm, stats, x, y)
                bins = np.digitize(model, edges) - 1
                cases.append({
                    "publisher": name, "how": {"norm": norm, **({} if norm == "none" else how), **clip}, "stats": stats,
                    "x": x.tolist(), "model": model.tolist(), "bins": bins.tolist(), "y": y.tolist(), "robot": robot.tolist(),
                })
    versions = {name: importlib.metadata.version(name) for name in ("lerobot", "numpy", "torch")}
    provenance = {"script": "test/vectors/norms.py", "openpi": "rlinf-openpi 0.1.1", **versions}
    out = Path(__file__).with_name("text") / "norms.json"
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    out.write_text(f'{{"provenance": {json.dumps(provenance)},\n"cases": [\n{lines}\n]}}\n')


main()
