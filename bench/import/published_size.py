"""ACT and SmolVLA at their published sizes, in LeRobot's own code.

`published_size.py make FAMILY FOLDER` writes `checkpoint` with weights drawn anew, and `golden` with one case and its rows.
`published_size.py time FAMILY FOLDER SECONDS MOST` prints `{"ms": X}`, the median time of at most MOST chunks in SECONDS, at least one, after
one that is not timed: the pipeline, the policy and the pipeline back, without decoding the pictures.
"""

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test/vectors/publishers"))

import act  # noqa: E402
import smol_words  # noqa: E402
import smolvla  # noqa: E402
from drawn import draw_state, draw_statistics, draw_weights, noise  # noqa: E402
from golden import Golden, numbers  # noqa: E402
from lerobot.configs import FeatureType, PolicyFeature  # noqa: E402
from lerobot.policies.act.modeling_act import ACTPolicy  # noqa: E402
from lerobot.policies.act.processor_act import make_act_pre_post_processors  # noqa: E402
from lerobot.policies.smolvla import smolvlm_with_expert  # noqa: E402
from lerobot.policies.smolvla.modeling_smolvla import SmolVLAPolicy  # noqa: E402
from lerobot.policies.smolvla.processor_smolvla import make_smolvla_pre_post_processors  # noqa: E402
from lerobot_parts import observation_of, pipelines_of, save, statistics, tokenizer_from  # noqa: E402
from PIL import Image  # noqa: E402
from transformers import SmolVLMConfig  # noqa: E402

THREADS, COLUMNS, WIDTH, HEIGHT = 2, 6, 640, 480
CAMERAS = {"act": ["front"], "smolvla": ["camera1", "camera2", "camera3"]}
POLICIES = {"act": ACTPolicy, "smolvla": SmolVLAPolicy}
VOCABULARY = 49280


def backbone():
    """LeRobot's class asks no hub for SmolVLM2-500M-Video-Instruct. The checkpoint does not hold its configuration."""
    vision = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "image_size": 512, "patch_size": 16}
    text = {
        "model_type": "llama", "hidden_size": 960, "intermediate_size": 2560, "num_hidden_layers": 32, "num_attention_heads": 15, "head_dim": 64,
        "num_key_value_heads": 5, "vocab_size": VOCABULARY, "rms_norm_eps": 1e-5, "rope_theta": 100000.0, "pad_token_id": 2,
    }
    config = SmolVLMConfig(vision_config=vision, text_config=text, scale_factor=4, image_token_id=49190)
    ids = SimpleNamespace(tokenizer=SimpleNamespace(fake_image_token_id=4, global_image_token_id=6))
    smolvlm_with_expert.AutoConfig = SimpleNamespace(from_pretrained=lambda _: config)
    smolvlm_with_expert.AutoProcessor = SimpleNamespace(from_pretrained=lambda _: ids)


def words(folder):
    """The stand-in tokenizer with as many pieces as the published table has rows."""
    smol_words.write(folder)
    path = folder / "tokenizer.json"
    made = json.loads(path.read_text())
    vocabulary = made["model"]["vocab"]
    made["model"]["vocab"] = vocabulary | {f"unused {at}": at for at in range(len(vocabulary), VOCABULARY)}
    path.write_text(json.dumps(made, ensure_ascii=False))


def checkpoint(family, folder):
    """Everything that is not named has the publisher's own default."""
    pictures = {f"observation.images.{name}": PolicyFeature(FeatureType.VISUAL, (3, HEIGHT, WIDTH)) for name in CAMERAS[family]}
    features = {
        "input_features": {**pictures, "observation.state": PolicyFeature(FeatureType.STATE, (COLUMNS,))},
        "output_features": {"action": PolicyFeature(FeatureType.ACTION, (COLUMNS,))},
    }
    made = {"observation.state": draw_statistics(COLUMNS, 5), "action": draw_statistics(COLUMNS, 6)}
    if family == "act":
        policy = ACTPolicy(act.ACTConfig(device="cpu", pretrained_backbone_weights=None, **features))
        draw_weights(policy, act.KINDS)
        made |= {key: {"mean": torch.full((3, 1, 1), 0.45), "std": torch.full((3, 1, 1), 0.25)} for key in pictures}
        pipelines = make_act_pre_post_processors(policy.config, statistics(**made))
    else:
        words(folder)
        policy = SmolVLAPolicy(smolvla.SmolVLAConfig(device="cpu", **features))
        draw_weights(policy, smolvla.KINDS)
        pipelines = make_smolvla_pre_post_processors(policy.config, statistics(**made))
    save(folder, policy, pipelines)
    return draw_state(made["observation.state"]["q01"], made["observation.state"]["q99"], 0)


def opened(family, folder):
    """The policy in float32 and its pipelines."""
    policy = POLICIES[family].from_pretrained(folder, strict=True).float().eval()
    return policy, *pipelines_of(folder)


def make(family, folder):
    written = folder / "checkpoint"
    written.mkdir(parents=True, exist_ok=True)
    tokenizer_from(written)
    state = checkpoint(family, written)
    policy, before, after = opened(family, written)
    kept = Golden(folder / "golden", f"LeRobot's {family} at its published size, by bench/import/published_size.py", ["lerobot", "torch"])
    keys = [f"observation.images.{name}" for name in CAMERAS[family]]
    number, pictures = kept.case("pick up the red cube", state, dict.fromkeys(keys, (WIDTH, HEIGHT)))
    given = {}
    if family == "smolvla":
        given["noise"] = noise(policy.config.chunk_size, policy.config.max_action_dim, number)
        kept.keep(number, "noise", given["noise"][0])
    actions = policy.predict_action_chunk(before(observation_of(pictures, state, "pick up the red cube")), **given)
    kept.keep(number, "rows", numbers(after(actions)[0]))
    kept.write()


def timed(family, folder, seconds, most):
    tokenizer_from(folder / "checkpoint")
    policy, before, after = opened(family, folder / "checkpoint")
    case = json.loads((folder / "golden/golden.json").read_text())["cases"][0]
    pictures = {key: np.asarray(Image.open(folder / "golden" / name).convert("RGB")) for key, name in case["frames"].items()}

    def chunk():
        return after(policy.predict_action_chunk(before(observation_of(pictures, case["state"], case["instruction"]))))

    chunk()
    times, ends = [], time.perf_counter() + float(seconds)
    while not times or (len(times) < int(most) and time.perf_counter() < ends):
        begun = time.perf_counter()
        chunk()
        times.append(1000 * (time.perf_counter() - begun))
    print(json.dumps({"ms": sorted(times)[len(times) // 2]}))


def main():
    torch.set_num_threads(THREADS)
    if sys.argv[2] == "smolvla":
        backbone()
    with torch.inference_mode():
        {"make": make, "time": timed}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])


if __name__ == "__main__":
    main()
