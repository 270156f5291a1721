"""pi0.5 at its published size, where memory has no place for two copies: the parameters of a model have none until those of a file are
mapped in their place.
"""

import contextlib
import functools
import json

import torch
from accelerate import init_empty_weights

SIDE = 224
ROWS = 50
SIZES = [(640, 480), (640, 480)]
TABLE = 257_152
"""Rows of PaliGemma's table of tokens."""


@contextlib.contextmanager
def mapped(model_class):
    """Models that are built here have parameters without memory. Loaded ones are used where they are mapped."""
    build, load = model_class.__init__, torch.nn.Module.load_state_dict

    def built(self, *args, **kwargs):
        with init_empty_weights(include_buffers=False):
            build(self, *args, **kwargs)

    model_class.__init__ = built
    model_class.to = lambda self, *_: self
    torch.nn.Module.load_state_dict = functools.partialmethod(load, assign=True)
    try:
        yield
    finally:
        model_class.__init__ = build
        del model_class.to
        torch.nn.Module.load_state_dict = load


def write_tokenizer(gemma, folder):
    """`tokenizer.json` of PaliGemma's size from Gemma's at the path `gemma`: places and segments follow its 256,000 tokens."""
    made = json.loads(open(gemma, encoding="utf-8").read())
    first = len(made["model"]["vocab"])
    names = [f"<loc{at:04}>" for at in range(1024)] + [f"<seg{at:03}>" for at in range(128)] + ["<image>"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    made["added_tokens"] += [{"id": first + at, "content": name, **flags, "special": name == "<image>"} for at, name in enumerate(names)]
    assert made["added_tokens"][-1]["id"] == TABLE
    (folder / "tokenizer.json").write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")
    names = {name: f"<{name[:3]}>" for name in ("pad_token", "eos_token", "bos_token", "unk_token")}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 10**9, **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
