"""Small tokenizers of each kind that publishers have, texts, and the ids that the libraries themselves give for them.

`text/NAME.model` (SentencePiece) or `text/NAME.json` (Hugging Face's tokenizers) is trained here; `text/encodings.json` has for each NAME the
texts and ids, and for `prompts` whole prompts of the publishers' own code: openpi's PaligemmaTokenizer, LeRobot's processor steps.
`text/NAME.tokenizer.json` is what src/bundle/import makes of it; test/bundle/import/tokenizer.test.ts compares that.

With a Python that has LeRobot 0.6.1, sentencepiece and tokenizers:

    python tokens.py OPENPI_SITE_PACKAGES             # writes
    python tokens.py OPENPI_SITE_PACKAGES --many N    # compares N texts of each kind with tokenizers.Tokenizer, writes nothing
"""

import ast
import importlib.metadata
import io
import json
import sys
from pathlib import Path

import numpy as np
import sentencepiece
import torch
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

OUT = Path(__file__).with_name("text")
OPENPI = Path(sys.argv[1]) / "openpi"

LINES = """pick up the red cube and put it in the blue bowl
fold the towel in half, then fold it in half again!
stack the three wooden blocks from largest to smallest (0.25 m apart)
open the top drawer; place the spoon inside
schließe die Schublade, s'il vous plaît, à côté de l'évier
赤いブロックを青い箱に入れて 上の引き出しを開ける
أغلق الدرج ثم افتحه  возьми красный куб
Task: close it, State: 12 255 0 -1 128;\tAction: 🤖 fold 👕 twice
{"name": "left_arm", "value": 3.14159}  <b>bold</b>
The robot's gripper isn't open; it'll open at 10:45, won't it?""".split("\n")
WORDS = sorted({word for line in LINES for word in line.split(" ") if word})
ODD = ["  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "_", "▁", "é", "e\u0301", "ﬁ", "１２", "½", "\u00a0", "\u3000", "\u200b", "\u1680", "ﾊﾟ", "नमस्ते",
       "👩🏽‍🔧", "𝔘", "\ufffd", "\u0000", "\u007f", "aaaaaaa", "ababab", "123456", "<bos>", "<s>", "</s>", "<unk>", "<pad>", "<0x0A>", "<0xff>",
       "'S", "'ll", "İ", "ß", "ẞ", "…", "™", "Å", "\ue000"]
MARKS = ["<loc0001>", "<loc0001><loc0001>", "fold the <image> twice", "<tool> a", "a<|im_start|>user", "x<loc0001>y"]

SENTENCEPIECE = {
    # As Gemma's: white space as user-defined pieces, digits alone, nothing normalised.
    "gemma": dict(model_type="bpe", vocab_size=700, byte_fallback=True, normalization_rule_name="identity", add_dummy_prefix=False,
                  remove_extra_whitespaces=False, split_digits=True, pad_id=0, eos_id=1, bos_id=2, unk_id=3,
                  user_defined_symbols=["\n", "\n\n", "\t", *("▁" * n for n in range(2, 6)), "<loc0001>", "<image>"]),
    "bpe": dict(model_type="bpe", vocab_size=420, character_coverage=0.98, rules="Ａ\tA\n１\t1\n２\t2\nﬁ\tfi\n\u00a0\t \n\u3000\t \n™\tTM\n"),
    "unigram": dict(model_type="unigram", vocab_size=360, byte_fallback=False, normalization_rule_name="identity"),
    "unigram-bytes": dict(model_type="unigram", vocab_size=600, byte_fallback=True, normalization_rule_name="identity",
                          remove_extra_whitespaces=False, character_coverage=0.98),
}
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def point_hex(text):
    return " ".join(f"{ord(c):X}" for c in text)


def trained(name, rules=None, **options):
    if rules is not None:
        tsv = Path("/tmp") / f"tendon-{name}.tsv"
        pairs = [line.split("\t") for line in rules.split("\n") if line]
        tsv.write_text("".join(f"{point_hex(a)}\t{point_hex(b)}\n" for a, b in pairs))
        options["normalization_rule_tsv"] = str(tsv)
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LINES * 3), model_writer=out, minloglevel=2, num_threads=1,
                                             hard_vocab_limit=False, self_test_sample_size=0, input_sentence_size=1000, **options)
    return out.getvalue()


def byte_level(name):
    """As SmolLM2's and Qwen3's: a regular expression cuts words, bytes are merged."""
    tokenizer = Tokenizer(models.BPE())
    if name == "qwen":
        from tokenizers import Regex

        tokenizer.normalizer = normalizers.NFC()
        cut = pre_tokenizers.Split(Regex(QWEN), behavior="isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    else:
        level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level])
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>"]
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=special, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(LINES * 3, trainer)
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False)])
    return tokenizer


def texts(count, seed):
    random = np.random.default_rng(seed)
    made = [*ODD, *LINES]
    while len(made) < count:
        parts = random.choice([*WORDS, *ODD], size=random.integers(1, 8))
        made.append(random.choice(["", " "]).join(parts))
        if random.random() < 0.2:
            points = random.integers(0x20, 0x3000, size=random.integers(1, 12))
            made.append("".join(map(chr, points)))
    return made[:count]


def class_of(path, name, scope):
    tree = ast.parse(path.read_text())
    found = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name)
    exec(compile(ast.Module([found], []), str(path), "exec"), scope)
    return scope[name]


def prompts(gemma):
    """Whole prompts: tokens without padding, of instructions at the edges of the text rules."""
    from lerobot.policies.pi05.processor_pi05 import Pi05PrepareStateTokenizerProcessorStep
    from lerobot.processor import NewLineTaskProcessorStep, TokenizerProcessorStep
    from lerobot.lerobot_types import TransitionKey

    model = Path("/tmp/tendon-gemma.model")
    model.write_bytes(gemma)

    class Download:
        @staticmethod
        def maybe_download(*_, **__):
            return model

    import logging

    scope = {"np": np, "sentencepiece": sentencepiece, "download": Download, "logging": logging}
    openpi = class_of(OPENPI / "models/tokenizer.py", "PaligemmaTokenizer", scope)
    fast = PreTrainedTokenizerFast(tokenizer_file=str(OUT / "gemma.tokenizer.json"), pad_token="<pad>", bos_token="<s>")
    from tokenizers import processors

    fast.backend_tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 2)])
    instructions = ["fold the towel", "  fold_the  towel\t\n twice_ ", "a\n", "a\n\n", "a \n", "", "\u00a0pick\u3000up\r\nit\u001c", "_", "红 🤖 é"]
    random = np.random.default_rng(7)
    for seed, instruction in enumerate(instructions):
        state = np.concatenate([random.uniform(-1.2, 1.2, 3), random.choice([-1, -1.5, 0, 1, 0.5, -0.0078125], 3)]).astype(np.float32)
        for name, tokens in {
            "openpi pi05": openpi(200).tokenize(instruction, state), "openpi pi0": openpi(48).tokenize(instruction),
            "lerobot pi05": None, "lerobot pi0": None,
        }.items():
            if tokens is None:
                pi05 = name == "lerobot pi05"
                step = Pi05PrepareStateTokenizerProcessorStep() if pi05 else NewLineTaskProcessorStep()
                to_tokens = TokenizerProcessorStep(tokenizer=fast, max_length=200 if pi05 else 48)
                transition = {TransitionKey.OBSERVATION: {"observation.state": torch.tensor(state)[None]},
                              TransitionKey.COMPLEMENTARY_DATA: {"task": [instruction]}}
                observation = to_tokens(step(transition))[TransitionKey.OBSERVATION]
                ids, mask = (observation[f"observation.language.{key}"][0].numpy() for key in ("tokens", "attention_mask"))
            else:
                ids, mask = tokens
            yield {"form": name, "instruction": instruction, "state": state.tolist(), "ids": [int(id) for id, on in zip(ids, mask) if on]}


def main():
    many = int(sys.argv[3]) if "--many" in sys.argv else 0
    encodings = {}
    for name, options in SENTENCEPIECE.items():
        path = OUT / f"{name}.model"
        if not many:
            path.write_bytes(trained(name, **options))
        processor = sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
        encodings[name] = processor.encode
    for name in ("smollm", "qwen"):
        path = OUT / f"{name}.json"
        if not many:
            path.write_text(byte_level(name).to_str() + "\n")
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.encode_special_tokens = True
        encodings[name] = lambda text, tokenizer=tokenizer: tokenizer.encode(text, add_special_tokens=False).ids
    if many:
        for name, encode in encodings.items():
            ours = Tokenizer.from_file(str(OUT / f"{name}.tokenizer.json"))
            ours.encode_special_tokens = True
            tried = texts(many, 99)
            off = [text for text in tried if list(encode(text)) != ours.encode(text, add_special_tokens=False).ids]
            print(name, len(off), "of", len(tried), "differ", [ascii(text) for text in off[:4]])
        return
    samples = texts(150, 5)
    cases = {name: {"texts": samples, "ids": [list(encode(text)) for text in samples], "marks": MARKS} for name, encode in encodings.items()}
    versions = {name: importlib.metadata.version(name) for name in ("sentencepiece", "tokenizers", "lerobot", "transformers", "numpy")}
    provenance = {"script": "test/vectors/tokens.py", "openpi": "rlinf-openpi 0.1.1", **versions}
    ready = (OUT / "gemma.tokenizer.json").exists()
    whole = list(prompts((OUT / "gemma.model").read_bytes())) if ready else []
    body = {"provenance": provenance, "tokenizers": cases, "prompts": whole}
    (OUT / "encodings.json").write_text(json.dumps(body, ensure_ascii=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
