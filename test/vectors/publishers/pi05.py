"""A small pi0.5 checkpoint in LeRobot's layout with golden values of LeRobot's own code: `python pi05.py FOLDER [--bf16] [--full GEMMA]`.

The classes are LeRobot's; only widths, layers, the table and the picture are smaller than published. With `--bf16` the file holds bfloat16
where LeRobot keeps it so; `golden` is then computed in float32 from these values, `golden-bf16` in bfloat16.

With `--full` nothing is smaller, and there is one case in float32. GEMMA is a `tokenizer.json` of Gemma's 256,000 tokens.
"""

import contextlib
import sys
from pathlib import Path

import gemma_words
import pi_full
import torch
from drawn import draw_size, draw_state, draw_statistics, draw_weights, noise, write_drawn
from golden import Golden, numbers, watch
from lerobot.configs import FeatureType, PolicyFeature, PreTrainedConfig
from lerobot.policies.pi05 import modeling_pi05
from lerobot.policies.pi05.configuration_pi05 import PI05Config
from lerobot.policies.pi05.processor_pi05 import make_pi05_pre_post_processors
from lerobot_parts import observation_of, pipelines_of, save, statistics, tokenizer_from
from pi_small import KINDS, ROWS, SIDE, shrink, sizes
from safetensors.torch import load_file
from words import INSTRUCTIONS

NAMES = ["waist", "shoulder", "elbow", "wrist_1", "wrist_2", "left_gripper", "Right_Gripper_width"]
TOP, WRIST, EMPTY = (f"observation.images.{name}" for name in ("top", "wrist", "empty_camera_0"))
SIZES = [
    {TOP: (97, 61), WRIST: (33, 71)},
    {TOP: (SIDE, SIDE), WRIST: (120, 120)},
    {TOP: (21, 17), WRIST: (85, 40)},
    {TOP: None, WRIST: (64, 48)},
    {TOP: (50, 101), WRIST: None},
]


def sizes_of(number):
    return {key: draw_size(size, 10 * number + view, (SIDE, SIDE)) for view, (key, size) in enumerate(SIZES[number].items())}


def checkpoint(folder, dtype, full):
    visual = {key: PolicyFeature(FeatureType.VISUAL, (3, 480, 640) if full else (3, 60, 80)) for key in (TOP, WRIST)}
    rows, side = (pi_full.ROWS, pi_full.SIDE) if full else (ROWS, SIDE)
    config = PI05Config(
        device="cpu", dtype=dtype, chunk_size=rows, n_action_steps=rows, image_resolution=(side, side), empty_cameras=1, use_relative_actions=True,
        action_feature_names=NAMES, input_features={**visual, "observation.state": PolicyFeature(FeatureType.STATE, (len(NAMES),))},
        output_features={"action": PolicyFeature(FeatureType.ACTION, (len(NAMES),))},
    )
    with memory_of(full):
        policy = modeling_pi05.PI05Policy(config)
    if not full:
        draw_weights(policy, KINDS)
    made = {"observation.state": draw_statistics(len(NAMES), 1, constant=[4]), "action": draw_statistics(len(NAMES), 2, constant=[3])}
    pipelines = make_pi05_pre_post_processors(config, statistics(**made))
    if full:
        config.save_pretrained(folder)
        write_drawn(policy, folder / "model.safetensors", KINDS)
    save(folder, None if full else policy, pipelines)
    return made["observation.state"]


def memory_of(full):
    return pi_full.mapped(modeling_pi05.PI05Pytorch) if full else contextlib.nullcontext()


def golden(folder, target, stats, dtype, full):
    config = PreTrainedConfig.from_pretrained(folder)
    config.dtype = dtype
    with memory_of(full):
        policy = modeling_pi05.PI05Policy.from_pretrained(folder, config=config)
    written = load_file(folder / "model.safetensors")
    assert all(torch.equal(value.float(), written[name].float()) for name, value in policy.named_parameters() if name in written)
    before, after = pipelines_of(folder)
    text = (
        f"LeRobot's pi0.5, computed in {dtype}, on weights drawn anew by test/vectors/publishers/pi05.py; image tokens as the projector gives "
        "them; views that are present only, in the order of the policy"
    )
    kept = Golden(target, text, ["lerobot", "torch", "transformers", "tokenizers", "pillow"])
    images, pasts, speeds = [], [], []
    watch(policy.model.paligemma_with_expert, "embed_image", images)
    watch(policy.model.paligemma_with_expert, "forward", pasts)
    watch(policy.model, "denoise_step", speeds)
    if full:
        # The file's types, so that float32 is computed from bfloat16 too; nothing reads the heads of words.
        for owner in (policy.model.paligemma_with_expert.paligemma, policy.model.paligemma_with_expert.gemma_expert):
            owner.lm_head = None
        policy.float()
    for number, instruction in enumerate(INSTRUCTIONS[:1] if full else INSTRUCTIONS):
        state = draw_state(stats["q01"], stats["q99"], number)
        sizes_of_case = dict(zip((TOP, WRIST), pi_full.SIZES, strict=True)) if full else sizes_of(number)
        _, pictures = kept.case(instruction, state, {**sizes_of_case, EMPTY: None})
        batch = before(observation_of(pictures, state, instruction))
        start = noise(config.chunk_size, 32, number)
        for list_ in (images, pasts, speeds):
            list_.clear()
        actions = policy.predict_action_chunk(batch, noise=start)
        rows = after(actions)
        views, _ = policy._preprocess_images(batch)
        present = len(pictures)
        tokens, mask = batch["observation.language.tokens"][0], batch["observation.language.attention_mask"][0].bool()
        valid = torch.cat([torch.arange(len(views)).repeat_interleave(images[0].shape[1]) < present, mask])
        kept.keep(number, "noise", start[0])
        kept.keep(number, "tokens", tokens[mask])
        kept.keep(number, "state", batch["observation.state"][0])
        for view in range(present):
            kept.keep(number, f"images.{view}", numbers(views[view][0]))
            kept.keep(number, f"image_tokens.{view}", numbers(images[view][0]))
        for layer, (keys, values, *_) in enumerate(pasts[0][1]):
            kept.keep(number, f"past_k.{layer}", numbers(keys[0][:, valid]))
            kept.keep(number, f"past_v.{layer}", numbers(values[0][:, valid]))
        for step, speed in enumerate(speeds):
            kept.keep(number, f"velocity.{step}", numbers(speed[0]))
        kept.keep(number, "rows", numbers(rows[0]))
    kept.write()


def main():
    folder, dtypes = Path(sys.argv[1]), ["float32", "bfloat16"] if "--bf16" in sys.argv else ["float32"]
    full = "--full" in sys.argv
    written = folder / "checkpoint"
    written.mkdir(parents=True, exist_ok=True)
    if full:
        pi_full.write_tokenizer(sys.argv[sys.argv.index("--full") + 1], written)
    else:
        gemma_words.write(written)
        modeling_pi05.get_gemma_config = lambda variant: modeling_pi05.GemmaConfig(**sizes(variant))
        shrink(modeling_pi05, "PaliGemmaForConditionalGenerationWithPiGemma", "PiGemmaForCausalLM")
    tokenizer_from(written)
    stats = checkpoint(written, dtypes[-1], full)
    for dtype in dtypes[:1] if full else dtypes:
        golden(written, folder / ("golden" if dtype == "float32" else "golden-bf16"), stats, dtype, full)


if __name__ == "__main__":
    main()
