"""A small ACT checkpoint in LeRobot's layout with golden values of LeRobot's own code: `python act.py FOLDER [--other]`.

The classes are LeRobot's. torchvision's residual networks have fixed widths, so the backbone's are divided by 32 here. `--other` takes the
other side of each choice that its configuration has: norms before, GELU, ResNet-34, two layers that decode, no latent encoder. It keeps no
pictures, which are made as those of the first are.
"""

import sys
from pathlib import Path

import torch
import torchvision
from drawn import draw_size, draw_state, draw_statistics, draw_weights
from golden import Golden, numbers
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.act.processor_act import make_act_pre_post_processors
from lerobot_parts import observation_of, pipelines_of, save, statistics
from seed import seeded

COLUMNS, ROWS, WIDTH = 6, 7, 32
FRONT, SIDE = "observation.images.front", "observation.images.side"
SIZES = dict.fromkeys((FRONT, SIDE), draw_size((70, 33), 0))
"""Odd on purpose: what a stride of 2 leaves at the edges counts. ACT never resizes, so every case has these sizes, and two cases keep
their pictures."""

KINDS = [
    ("_input_proj", 0, 0.05), ("encoder.layers.0.self_attn.out_proj", 0, 0.05),
    ("bn1.weight", 1, 0.5), ("bn2.weight", 1, 0.5), ("downsample.1.weight", 1, 0.5), ("running_mean", 0, 1), ("norm", 1, 1), ("conv", 0, 1.4),
    ("downsample.0", 0, 1.4), ("pos_embed", 0, 2), ("bias", 0, 0.5),
]
"""What the first norm reads is small, so that its epsilon shows."""


def shrink():
    """torchvision's residual network with 2, 4, 8 and 16 channels in place of 64 to 512."""
    network = torchvision.models.resnet.ResNet
    made, layer = network.__init__, network._make_layer

    def narrow_layer(self, block, planes, blocks, stride=1, dilate=False):
        if planes == 64:
            self.inplanes = 2
        return layer(self, block, planes // 32, blocks, stride, dilate)

    def narrow(self, *args, **kwargs):
        made(self, *args, **kwargs)
        self.conv1 = torch.nn.Conv2d(3, 2, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(2)
        self.fc = torch.nn.Linear(16, 10)

    network.__init__, network._make_layer = narrow, narrow_layer


OTHER = {
    "vision_backbone": "resnet34", "pre_norm": True, "feedforward_activation": "gelu", "n_encoder_layers": 1, "n_decoder_layers": 2,
    "use_vae": False,
}


def checkpoint(folder, choices):
    shapes = {key: PolicyFeature(FeatureType.VISUAL, (3, height, width)) for key, (width, height) in SIZES.items()}
    config = ACTConfig(
        device="cpu", chunk_size=ROWS, n_action_steps=ROWS, pretrained_backbone_weights=None, dim_model=WIDTH, n_heads=4, dim_feedforward=48,
        n_vae_encoder_layers=1, latent_dim=8, **choices,
        input_features={**shapes, "observation.state": PolicyFeature(FeatureType.STATE, (COLUMNS,))},
        output_features={"action": PolicyFeature(FeatureType.ACTION, (COLUMNS,))},
    )
    policy = ACTPolicy(config)
    draw_weights(policy, KINDS)
    made = {"observation.state": draw_statistics(COLUMNS, 5, constant=[4]), "action": draw_statistics(COLUMNS, 6, constant=[3])}
    for view, key in enumerate(SIZES):
        spread = torch.rand((2, 3, 1, 1), generator=torch.Generator().manual_seed(seeded(view)))
        made[key] = {"mean": 0.3 + 0.3 * spread[0], "std": 0.15 + 0.2 * spread[1]}
    save(folder, policy, make_act_pre_post_processors(config, statistics(**made)))
    return made["observation.state"]


def golden(folder, target, stats, with_pictures):
    policy = ACTPolicy.from_pretrained(folder, strict=True)
    policy.eval()
    before, after = pipelines_of(folder)
    text = "LeRobot's ACT, computed in float32, on weights drawn anew by test/vectors/publishers/act.py; actions are the rows before the way back"
    kept = Golden(target, text, ["lerobot", "torch", "torchvision", "pillow"])
    for number in range(5):
        state = draw_state(stats["q01"], stats["q99"], number)
        _, pictures = kept.case("", state, SIZES)
        batch = before(observation_of(pictures, state, ""))
        actions = policy.predict_action_chunk(batch)
        kept.keep(number, "state", batch["observation.state"][0])
        for view, key in enumerate(policy.config.image_features if number < with_pictures else ()):
            kept.keep(number, f"images.{view}", numbers(batch[key][0]))
        kept.keep(number, "actions", numbers(actions[0]))
        kept.keep(number, "rows", numbers(after(actions)[0]))
    kept.write()


def main():
    folder = Path(sys.argv[1])
    shrink()
    choices, with_pictures = (OTHER, 0) if "--other" in sys.argv else ({"n_encoder_layers": 2, "n_decoder_layers": 1}, 2)
    golden(folder / "checkpoint", folder / "golden", checkpoint(folder / "checkpoint", choices), with_pictures)


if __name__ == "__main__":
    main()
