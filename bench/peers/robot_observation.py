"""What a robot of the peers sends: `FOLDER` holds its three frames, `STATE` is JSON, `INSTRUCTION` a text."""

import json
from pathlib import Path

import numpy as np
from policy_shape import CAMERAS, COLUMNS, ROWS


class Observation:
    def __init__(self, folder: str, state: str, instruction: str) -> None:
        paths = sorted(Path(folder).glob("*.jpg"))
        self.jpegs = dict(zip(CAMERAS, (path.read_bytes() for path in paths), strict=True))
        self.state = np.array(json.loads(state), dtype=np.float32)
        self.instruction = instruction


def check(actions: np.ndarray) -> None:
    if actions.shape != (ROWS, COLUMNS):
        raise SystemExit(f"the server answered rows of shape {actions.shape}")
