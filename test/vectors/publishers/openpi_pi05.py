"""A small pi0.5 checkpoint in openpi's PyTorch layout with golden values of openpi's own code: `python openpi_pi05.py FOLDER`.

The file is as openpi writes it in bfloat16, so with a tied table once and norms in float32; golden values are computed in float32 from these
values. The transforms are those of openpi's ALOHA configurations without their own joint conversions.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

torch.compile = lambda function, **_: function

import gemma_words  # noqa: E402
from drawn import draw_size, draw_state, draw_statistics, draw_weights  # noqa: E402
from golden import Golden, numbers, watch  # noqa: E402
from openpi import transforms  # noqa: E402
from openpi.models import gemma, tokenizer  # noqa: E402
from openpi.models.pi0_config import Pi0Config  # noqa: E402
from openpi.models_pytorch import gemma_pytorch, pi0_pytorch, preprocessing_pytorch  # noqa: E402
from openpi.policies.policy import Policy  # noqa: E402
from openpi.shared import normalize  # noqa: E402
from pi_small import KINDS, ROWS, SIDE, shrink, sizes  # noqa: E402
from safetensors.torch import load_model, save_model  # noqa: E402
from seed import seeded  # noqa: E402
from words import INSTRUCTIONS  # noqa: E402

COLUMNS = 14
RELATIVE = transforms.make_bool_mask(6, -1, 6, -1)
VIEWS = preprocessing_pytorch.IMAGE_KEYS
SIZES = [[(97, 61), (33, 71), (50, 50)], [(SIDE, SIDE), (120, 120), (40, 64)], [(21, 17), None, (85, 40)], [None, (64, 48), (41, 43)], [(101, 50), None, None]]


class Inputs:
    """Pictures in their places; a missing one is black and masked, as in openpi's own inputs of robots."""

    def __call__(self, data):
        black = np.zeros((SIDE, SIDE, 3), np.uint8)
        image = {view: data["images"].get(view, black) for view in VIEWS}
        mask = {view: np.bool_(view in data["images"]) for view in VIEWS}
        return {"state": data["state"], "image": image, "image_mask": mask, "prompt": data["prompt"]}


class Outputs:
    def __call__(self, data):
        return {"actions": data["actions"][:, :COLUMNS]}


def checkpoint(folder):
    config = Pi0Config(pi05=True, action_horizon=ROWS, dtype="bfloat16")
    model = pi0_pytorch.PI0Pytorch(config)
    draw_weights(model, KINDS)
    save_model(model, str(folder / "model.safetensors"))
    facts = {"action_dim": 32, "action_horizon": ROWS, "paligemma_variant": "gemma_2b", "action_expert_variant": "gemma_300m"}
    (folder / "config.json").write_text(json.dumps(facts | {"precision": "bfloat16"}, indent=2) + "\n")
    stats = {}
    for name, seed, constant in (("state", 3, [4]), ("actions", 4, [3])):
        made = draw_statistics(COLUMNS, seed, constant)
        stats[name] = normalize.NormStats(**{kind: made[kind].astype(float) for kind in ("mean", "std", "q01", "q99")})
    normalize.save(folder / "assets" / "trossen", stats)


def golden(folder, target):
    model = pi0_pytorch.PI0Pytorch(Pi0Config(pi05=True, action_horizon=ROWS, dtype="float32"))
    load_model(model, str(folder / "model.safetensors"))
    stats = normalize.load(folder / "assets" / "trossen")
    before = [
        Inputs(), transforms.DeltaActions(RELATIVE), transforms.Normalize(stats, use_quantiles=True), transforms.ResizeImages(SIDE, SIDE),
        transforms.TokenizePrompt(tokenizer.PaligemmaTokenizer(200), discrete_state_input=True), transforms.PadStatesAndActions(32),
    ]
    after = [transforms.Unnormalize(stats, use_quantiles=True), transforms.AbsoluteActions(RELATIVE), Outputs()]
    # The state of the outputs is the normalised one that went in; Unnormalize turns it back for AbsoluteActions.
    policy = Policy(model, transforms=before, output_transforms=after, is_pytorch=True)
    text = (
        "openpi's pi0.5, computed in float32, on weights drawn anew by test/vectors/publishers/openpi_pi05.py; image tokens as the projector "
        "gives them; images.K and image_tokens.K of places with a picture only; columns 0 to 5 and 7 to 12 are relative to the state"
    )
    kept = Golden(target, text, ["rlinf-openpi", "rlinf-transformer-openpi", "torch", "sentencepiece", "numpy", "pillow"])
    seen = {"images": [], "pasts": [], "speeds": [], "observations": []}
    for owner, name, part in (
        (model.paligemma_with_expert, "embed_image", "images"), (model.paligemma_with_expert, "forward", "pasts"),
        (model, "denoise_step", "speeds"), (model, "_preprocess_observation", "observations"),
    ):
        watch(owner, name, seen[part])
    for number, instruction in enumerate(INSTRUCTIONS):
        state = draw_state(np.float32(stats["state"].q01), np.float32(stats["state"].q99), number)
        drawn = [draw_size(size, 10 * number + view, (SIDE, SIDE)) for view, size in enumerate(SIZES[number])]
        sizes_of_case = {f"observation.images.{view}": size for view, size in zip(VIEWS, drawn, strict=True)}
        _, pictures = kept.case(instruction, state, sizes_of_case)
        pictures = {key.rsplit(".", 1)[-1]: picture for key, picture in pictures.items()}
        noise = np.random.default_rng(seeded(number)).standard_normal((ROWS, 32)).astype(np.float32)
        for list_ in seen.values():
            list_.clear()
        raw = {"images": pictures, "state": np.array(state), "prompt": instruction}
        rows = policy.infer(raw, noise=noise)["actions"]
        views, masks, tokens, token_mask, normalised = seen["observations"][0]
        present = [view for view, mask in enumerate(masks) if bool(mask[0])]
        each = seen["images"][0].shape[1]
        valid = torch.cat([*(mask.expand(each) for mask in masks), token_mask[0]])
        kept.keep(number, "noise", noise)
        kept.keep(number, "tokens", tokens[0][token_mask[0]].to(torch.int64))
        kept.keep(number, "state", normalised[0, :COLUMNS].to(torch.float32))
        for view in present:
            kept.keep(number, f"images.{view}", numbers(views[view][0]))
            kept.keep(number, f"image_tokens.{view}", numbers(seen["images"][view][0]))
        for layer, (keys, values) in enumerate(seen["pasts"][0][1]):
            kept.keep(number, f"past_k.{layer}", numbers(keys[0][:, valid]))
            kept.keep(number, f"past_v.{layer}", numbers(values[0][:, valid]))
        for step, speed in enumerate(seen["speeds"]):
            kept.keep(number, f"velocity.{step}", numbers(speed[0]))
        kept.keep(number, "rows", rows.astype(np.float32))
    kept.write()


def main():
    folder = Path(sys.argv[1])
    written = folder / "checkpoint"
    written.mkdir(parents=True, exist_ok=True)
    (written / "paligemma_tokenizer.model").write_bytes(gemma_words.sentencepiece_model())
    tokenizer.download.maybe_download = lambda *_, **__: written / "paligemma_tokenizer.model"
    preprocessing_pytorch.preprocess_observation_pytorch.__kwdefaults__["image_resolution"] = (SIDE, SIDE)
    gemma.get_config = lambda variant: gemma.Config(**sizes(variant))
    shrink(gemma_pytorch, "PaliGemmaForConditionalGeneration", "GemmaForCausalLM")
    checkpoint(written)
    golden(written, folder / "golden")


if __name__ == "__main__":
    main()
