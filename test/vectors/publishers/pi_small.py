"""The sizes of the small pi0.5 checkpoints in both layouts. What no file says stays as published: 8 heads, 1 of keys and values, 16 heads of
the tower, patches of 14.
"""

import gemma_words

SIDE = 28
ROWS = 6
WIDTHS = {"gemma_2b": (32, 64), "gemma_300m": (24, 40)}
"""Width and width of the MLP of each variant."""

KINDS = [
    ("patch_embedding", 0, 0.2), ("position_embedding", 0, 0.4), ("embed_tokens", 0, 0.2), ("action_in_proj", 0, 0.25), ("time_mlp_in.weight", 0, 1.2),
    ("layernorm.dense.bias", 0, 2), ("norm.dense.bias", 0, 2), ("layer_norm1.weight", 1, 1), ("layer_norm2.weight", 1, 1),
    ("post_layernorm.weight", 1, 1), ("layernorm.weight", 0, 1), ("norm.weight", 0, 1), (".bias", 0, 0.5),
]
"""Which weights are drawn around what: see `draw_weights`. What the first norm of tower, language model and expert reads is small, so that its
epsilon shows; what is made of the time is large, so that the last place of a time does."""


def shrink(module, pali, causal):
    """Small sizes in the configurations of the two models that the publisher's `module` builds, by their names."""
    build_pali, build_causal = getattr(module, pali), getattr(module, causal)

    def small_pali(config):
        config.text_config.vocab_size = gemma_words.SIZE
        vision = config.vision_config
        vision.hidden_size, vision.intermediate_size, vision.num_hidden_layers, vision.projection_dim = 32, 48, 2, 32
        vision.image_size = SIDE
        return build_pali(config=config)

    def small_causal(config):
        config.vocab_size = gemma_words.SIZE
        return build_causal(config=config)

    setattr(module, pali, small_pali)
    setattr(module, causal, small_causal)


def sizes(variant):
    width, mlp = WIDTHS[variant]
    return {"width": width, "depth": 2, "mlp_dim": mlp, "num_heads": 8, "num_kv_heads": 1, "head_dim": 8}
