"""A small SmolVLA checkpoint in LeRobot's layout with golden values of LeRobot's own code: `python smolvla.py FOLDER`.

The classes are LeRobot's. The backbone, which a checkpoint only names, is a small one of the same kind: 12 heads in the tower, 15 heads with 5
of keys and values in the language model, a pixel shuffle of 4. Its tensors are bfloat16 in the file as published; golden values are computed
in float32 from these values. The file is written once more in shards, which LeRobot itself does not read.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import smol_words
import torch
from drawn import draw_size, draw_state, draw_statistics, draw_weights, noise
from golden import Golden, numbers, watch
from huggingface_hub import save_torch_state_dict
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.policies.smolvla import smolvlm_with_expert
from lerobot.policies.smolvla.configuration_smolvla import SmolVLAConfig
from lerobot.policies.smolvla.modeling_smolvla import SmolVLAPolicy
from lerobot.policies.smolvla.processor_smolvla import make_smolvla_pre_post_processors
from lerobot_parts import observation_of, pipelines_of, save, statistics, tokenizer_from
from safetensors.torch import load_file
from transformers import SmolVLMConfig
from words import INSTRUCTIONS

COLUMNS, ROWS, SIDE = 6, 5, 32
UP, ARM, EMPTY = (f"observation.images.{name}" for name in ("up", "arm", "empty_camera_0"))
SIZES = [
    {UP: (97, 61), ARM: (33, 71)},
    {UP: (SIDE, SIDE), ARM: (120, 120)},
    {UP: (21, 17), ARM: (85, 40)},
    {UP: None, ARM: (64, 48)},
    {UP: (50, 101), ARM: None},
]
KINDS = [("patch_embedding", 0, 0.2), ("position_embedding", 0, 0.4), ("embed_tokens", 0, 0.1), ("action_time_mlp_out", 0, 0.1)]
KINDS += [("layer_norm1.bias", 0, 0.5), ("layer_norm2.bias", 0, 0.5), ("post_layernorm.bias", 0, 0.5), ("norm", 1, 1), ("bias", 0, 0.5)]
"""What the first norm of tower, language model and expert reads is small, so that its epsilon shows."""


def shrink():
    """LeRobot's classes build a small backbone, and ask no hub for it."""
    vision = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 12, "image_size": SIDE, "patch_size": 4}
    text = {
        "model_type": "llama", "hidden_size": 60, "intermediate_size": 32, "num_hidden_layers": 6, "num_attention_heads": 15, "head_dim": 4,
        "num_key_value_heads": 5, "vocab_size": smol_words.SIZE, "rms_norm_eps": 1e-5, "rope_theta": 100000.0, "pad_token_id": 2,
    }
    config = SmolVLMConfig(vision_config=vision, text_config=text, scale_factor=4, image_token_id=5)
    ids = SimpleNamespace(tokenizer=SimpleNamespace(fake_image_token_id=4, global_image_token_id=6))
    smolvlm_with_expert.AutoConfig = SimpleNamespace(from_pretrained=lambda _: config)
    smolvlm_with_expert.AutoProcessor = SimpleNamespace(from_pretrained=lambda _: ids)
    smolvlm_with_expert.get_intermediate_size = lambda width: width


def sizes_of(number):
    return {key: draw_size(size, 10 * number + view, (SIDE, SIDE)) for view, (key, size) in enumerate(SIZES[number].items())}


def checkpoint(folder):
    visual = {key: PolicyFeature(FeatureType.VISUAL, (3, 60, 80)) for key in (UP, ARM)}
    config = SmolVLAConfig(
        device="cpu", chunk_size=ROWS, n_action_steps=ROWS, resize_imgs_with_padding=(SIDE, SIDE), num_vlm_layers=4, expert_width_multiplier=0.5, empty_cameras=1,
        input_features={**visual, "observation.state": PolicyFeature(FeatureType.STATE, (COLUMNS,))},
        output_features={"action": PolicyFeature(FeatureType.ACTION, (COLUMNS,))},
    )
    policy = SmolVLAPolicy(config)
    draw_weights(policy, KINDS)
    policy.model.vlm_with_expert.vlm.to(torch.bfloat16)
    made = {"observation.state": draw_statistics(COLUMNS, 7, constant=[4]), "action": draw_statistics(COLUMNS, 8, constant=[3])}
    save(folder, policy, make_smolvla_pre_post_processors(config, statistics(**made)))
    return made["observation.state"]


def shard(folder):
    """The same tensors in shards with their index, in place of the single file."""
    whole = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    save_torch_state_dict(whole, folder, max_shard_size="100KB")


def golden(folder, target, stats):
    policy = SmolVLAPolicy.from_pretrained(folder, strict=True)
    policy.float().eval()
    before, after = pipelines_of(folder)
    text = (
        "LeRobot's SmolVLA, computed in float32, on weights drawn anew by test/vectors/publishers/smolvla.py; image tokens as the connector gives "
        "them, before the factor of the root of the width; views that are present only, in the order of the policy; state not padded"
    )
    kept = Golden(target, text, ["lerobot", "torch", "transformers", "tokenizers", "pillow"])
    images, speeds, pasts = [], [], []
    watch(policy.model.vlm_with_expert, "embed_image", images)
    watch(policy.model, "denoise_step", speeds)
    forward = policy.model.vlm_with_expert.forward

    def watched(**given):
        made = forward(**given)
        if given.get("past_key_values") is None:
            pasts.append([(layer.keys.clone(), layer.values.clone()) for layer in made[1].layers])
        return made

    policy.model.vlm_with_expert.forward = watched
    for number, instruction in enumerate(INSTRUCTIONS):
        state = draw_state(stats["q01"], stats["q99"], number)
        _, pictures = kept.case(instruction, state, {**sizes_of(number), EMPTY: None})
        batch = before(observation_of(pictures, state, instruction))
        for list_ in (images, speeds, pasts):
            list_.clear()
        start = noise(ROWS, 32, number)
        views, _ = policy.prepare_images(batch)
        actions = policy.predict_action_chunk(dict(batch), noise=start)
        present = len(pictures)
        tokens, mask = batch["observation.language.tokens"][0], batch["observation.language.attention_mask"][0].bool()
        pictured = torch.arange(len(views)).repeat_interleave(images[0].shape[1]) < present
        valid = torch.cat([pictured, mask, torch.tensor([True])])
        kept.keep(number, "noise", start[0])
        kept.keep(number, "tokens", tokens[mask])
        kept.keep(number, "state", batch["observation.state"][0])
        for view in range(present):
            kept.keep(number, f"images.{view}", numbers(views[view][0]))
            kept.keep(number, f"image_tokens.{view}", numbers(images[view][0]))
        for layer, (keys, values) in enumerate(pasts[0]):
            kept.keep(number, f"past_k.{layer}", numbers(keys[0][:, valid]))
            kept.keep(number, f"past_v.{layer}", numbers(values[0][:, valid]))
        for step, speed in enumerate(speeds):
            kept.keep(number, f"velocity.{step}", numbers(speed[0]))
        kept.keep(number, "rows", numbers(after(actions)[0]))
    kept.write()


def main():
    folder = Path(sys.argv[1])
    written = folder / "checkpoint"
    written.mkdir(parents=True, exist_ok=True)
    smol_words.write(written)
    tokenizer_from(written)
    shrink()
    golden(written, folder / "golden", checkpoint(written))
    shard(written)


if __name__ == "__main__":
    main()
