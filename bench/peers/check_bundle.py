"""Whether the peers' policy computes the bundle: `check_bundle.py BUNDLE` prints JSON.

The bundle's parity vector holds an observation and the rows that an independent implementation computed for it.
"""

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from policy import Bundle

sys.path.append(str(Path(__file__).parents[2] / "test/vectors"))
from noise import noise  # noqa: E402

folder = Path(sys.argv[1])
bundle = Bundle(folder, threads=1)
vector = json.loads((folder / "parity/chunk.json").read_text())
greatest = 0.0
for observation in vector["observations"]:
    pictures = [Image.open(folder / "parity" / name).convert("RGB") for name in observation["frames"]]
    expected = np.array(observation["actions"])
    drawn = noise(bundle.export_id, vector["seed"], observation["step"], len(expected), bundle.latent_width).astype(np.float32)
    rows = bundle.rows(pictures, np.array(observation["state"]), vector["instruction"], drawn)
    greatest = max(greatest, float(np.abs(rows - expected).max()))
print(json.dumps({"greatest": greatest, "tolerance": bundle.tolerance}))
