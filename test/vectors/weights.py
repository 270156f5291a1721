"""Weights of a built bundle as float64, read from its ONNX files by name."""

import math

import numpy as np
import onnx
from onnx import numpy_helper


class Weights:
    """Initialisers of one graph as float64, by name; int8 ones times the scales of their columns.
    Those in a weight file are mapped: each is widened when it is asked for, so that a model of gigabytes fits. `sizes` are the columns of matrices that may stand side by side."""

    def __init__(self, path, sizes=None):
        self.sizes = sizes or {}
        self.tensors = {t.name: (t, path.parent) for t in onnx.load(path, load_external_data=False).graph.initializer}

    def __contains__(self, name):
        return name in self.tensors

    def __getitem__(self, name):
        if name not in self.tensors:
            return self.part(name)
        return self.scaled(name, stored(*self.tensors[name]))

    def scaled(self, name, values):
        return values * self[f"{name}.scale"] if f"{name}.scale" in self else values

    def part(self, name):
        """The columns of `query` in `query+key+value.weight`."""
        scope, matrix, kind = name.rsplit(".", 2)
        names = ((n, n.rsplit(".", 2)) for n in self.tensors if n.count(".") > 1)
        whole = next(n for n, parts in names if parts[0] == scope and matrix in parts[1].split("+") and parts[2] == kind)
        parts = whole.rsplit(".", 2)[1].split("+")
        sizes = [self.sizes[scope.split(".")[0]][part] for part in parts]
        at = parts.index(matrix)
        return self.scaled(whole, stored(*self.tensors[whole], slice(sum(sizes[:at]), sum(sizes[: at + 1]))))

    def dense(self, name, x):
        y = x @ self[f"{name}.weight"]
        return y + self[f"{name}.bias"] if f"{name}.bias" in self else y


def stored(tensor, folder, columns=None):
    """The values of a tensor, or some of its columns, as float64."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        values = numpy_helper.to_array(tensor).astype(np.float64)
        return values if columns is None else values[:, columns]
    where = {entry.key: entry.value for entry in tensor.external_data}
    kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    shape = tuple(tensor.dims)
    assert int(where["length"]) == math.prod(shape) * kind.itemsize, tensor.name
    values = np.memmap(folder / where["location"], kind, "r", int(where["offset"]), shape)
    return (values if columns is None else values[:, columns]).astype(np.float64)


def columns_of(arch):
    """Columns of the matrices that may stand side by side, for each part of the model."""
    prefix = arch["language"]
    heads = {"query": prefix["heads"] * prefix["head_dim"]} | dict.fromkeys(("key", "value"), prefix["kv_heads"] * prefix["head_dim"])
    return {"vision": dict.fromkeys(("query", "key", "value"), arch["vision"]["width"]), "language": heads, "expert": heads}
