"""Milliseconds of an ACT chunk in LeRobot's own code: `act_torch.py CHECKPOINT BUNDLE`. The last line is JSON.

The observation is that of the bundle's parity vector. Decoding its pictures is not timed; the processors are, as tendon's normalising is.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.factory import make_pre_post_processors
from PIL import Image

THREADS, WARM, CHUNKS = 2, 5, 30

torch.set_num_threads(THREADS)
checkpoint, bundle = sys.argv[1], Path(sys.argv[2])
vector = json.loads((bundle / "parity/chunk.json").read_text())["observations"][0]
policy = ACTPolicy.from_pretrained(checkpoint).eval()
before, after = make_pre_post_processors(policy.config, pretrained_path=checkpoint)
pictures = [np.array(Image.open(bundle / "parity" / name)) for name in vector["frames"]]


def chunk() -> torch.Tensor:
    """Rows of one observation, in robot units."""
    observation = {"observation.state": torch.tensor(vector["state"], dtype=torch.float32)}
    for key, picture in zip(policy.config.image_features, pictures):
        observation[key] = torch.from_numpy(picture).permute(2, 0, 1).float() / 255
    return after(policy.predict_action_chunk(before(observation)))[0]


with torch.inference_mode():
    rows = chunk()
    for _ in range(WARM):
        chunk()
    times = []
    for _ in range(CHUNKS):
        begun = time.perf_counter()
        chunk()
        times.append(1000 * (time.perf_counter() - begun))
apart = (rows - torch.tensor(vector["actions"])).abs().max().item()
print(json.dumps({"ms": sorted(times)[CHUNKS // 2], "apart": apart}))
