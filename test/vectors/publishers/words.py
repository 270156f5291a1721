"""The words that stand-in tokenizers are trained on, and the texts that test one: every edge of the publishers' text rules.

The pieces are few on purpose. A text of other words falls to letters, and a text in another script falls to bytes.
"""

import random

WORDS = (
    "pick up the red blue green cube and place it in on box bowl tray fold towel open close drawer move left right arm gripper then put "
    "cup near edge of table stack blocks hand over slowly wipe plate State Task Action Question answer robot should What to"
).split()


def sentences(count=4000, seed=7):
    draw = random.Random(seed)
    for _ in range(count):
        text = " ".join(draw.choice(WORDS) for _ in range(draw.randint(2, 9)))
        bins = " ".join(str(draw.randint(-1, 255)) for _ in range(draw.randint(3, 14)))
        yield f"Task: {text}, State: {bins};\nAction: "
        yield text


INSTRUCTIONS = [
    "pick up the red cube",
    "  fold_the__towel,\nthen  place it\t in the box  ",
    "",
    "coloque o copo azul à esquerda – 把红色方块放进盒子 🤖",
    "wipe the plate slowly and stack the blocks " * 26,
]
"""Five: plain; underscores, a newline, runs of spaces, a tab, white space at both ends; empty; not ASCII; longer than any maximum."""

EDGES = [
    *INSTRUCTIONS,
    " ", "\n", "\n\n\n", "_", "___", "\t", "\t\t a", "a\r\nb", "a  b   c    d     e      f", "a\u00a0b", "a\u2009b\u3000c", "\ufeffpick", "e\u0301 é",
    "ﬁve ½ ²", "<bos>", "<eos> <pad> <unk>", "<mask>", "<loc0001>", "<0x0A>", "▁pick▁up", "pick▁up", "State: 1 2 3", "100000", "-1 255 12",
    "PICK UP", "pick\x00up", "pick\x7fup", "\x1b[0m", "🇧🇷👩‍🔧", "नमस्ते दुनिया", "مرحبا بالعالم", "\u202eright to left", "a\u0308\u0323", "ǅ ß ẞ İ ı",
    "x" * 300, "the" * 100, "𝔭𝔦𝔠𝔨 𝟙𝟚", "put it down.", "\"quoted\" 'text'", "a_b_c\\n", "tab\tat the end\t", "\vvertical\f", "line\u2028sep\u2029par", "\ud7ff\ue000",
]


def texts(count=400, seed=11):
    """Edges, and random mixtures of words, white space, digits and letters of several scripts."""
    draw = random.Random(seed)
    pieces = [*WORDS, " ", "  ", "    ", "_", "\n", "\n\n", "\t", "é", "ü", "红", "🤖", "0", "17", "255", "-", ",", ";", ".", "q", "zx", "▁", "\u00a0", "İ"]
    made = ["".join(draw.choice(pieces) + draw.choice(["", "", " "]) for _ in range(draw.randint(1, 24))) for _ in range(count)]
    return EDGES + made
