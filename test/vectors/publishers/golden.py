"""Writes golden values: `golden.json`, `golden.safetensors` and the frames as JPEG, as the publisher's code computed them.

`golden.json` is {provenance, cases: [{instruction, state, frames}]}: `state` in robot units in column order, `frames` from the checkpoint's
image key to a file, or null for a camera that is missing. The tensors of case N have names that begin with `N.`.
"""

import io
import json
from importlib.metadata import version

import numpy as np
import torch
from drawn import draw_picture
from PIL import Image
from safetensors.torch import save_file


class Golden:
    def __init__(self, folder, provenance, packages):
        self.folder, self.cases, self.tensors = folder, [], {}
        self.provenance = provenance + "; " + ", ".join(f"{name} {version(name)}" for name in packages)
        folder.mkdir(parents=True, exist_ok=True)

    def case(self, instruction, state, sizes):
        """Adds a case and returns its number and its pictures as decoded, u8 [h, w, 3]. `sizes` is image key to (width, height) or None."""
        number = len(self.cases)
        frames, pictures = {}, {}
        for view, (key, size) in enumerate(sizes.items()):
            frames[key] = None
            if size is None:
                continue
            frames[key] = f"{number}-{key.rsplit('.', 1)[-1]}.jpg"
            packed = io.BytesIO()
            draw_picture(*size, seed=100 * number + view).save(packed, "JPEG", quality=80)
            (self.folder / frames[key]).write_bytes(packed.getvalue())
            pictures[key] = np.asarray(Image.open(packed).convert("RGB"))
        self.cases.append({"instruction": instruction, "state": state, "frames": frames})
        return number, pictures

    def keep(self, number, name, value):
        self.tensors[f"{number}.{name}"] = torch.as_tensor(np.asarray(value)).contiguous().clone()

    def write(self):
        cases = ",\n".join("  " + json.dumps(case, ensure_ascii=False) for case in self.cases)
        head = json.dumps(self.provenance, ensure_ascii=False)
        (self.folder / "golden.json").write_text(f'{{\n "provenance": {head},\n "cases": [\n{cases}\n ]\n}}\n')
        save_file(self.tensors, str(self.folder / "golden.safetensors"))


def numbers(tensor):
    """The values of a tensor, bf16 as float32."""
    return tensor.detach().to(torch.float32).numpy() if tensor.is_floating_point() else tensor.detach().numpy()


def watch(owner, name, kept):
    """Lets every result of a method be appended to `kept`."""
    method = getattr(owner, name)

    def watched(*args, **kwargs):
        result = method(*args, **kwargs)
        kept.append(result)
        return result

    setattr(owner, name, watched)
