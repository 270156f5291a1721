"""The words that stand-in tokenizers are trained on, and the instructions of the five cases.

The pieces are few on purpose. A text of other words falls to letters, and a text in another script falls to bytes.
"""

import random

from seed import SEED

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


SETS = [
    [
        "pick up the red cube",
        "  fold_the__towel,\nthen  place it\t in the box  ",
        "",
        "coloque o copo azul à esquerda – 把红色方块放进盒子 🤖",
        "wipe the plate slowly and stack the blocks " * 26,
    ],
    ["Pick_up__the CUBE!\n", "\n\nopen the drawer\r\n", "\ttabs\tand  \t runs     of six      ", "_", "a line\n\n"],
    [
        "\u00a0a no-break space\u00a0inside \u3000and an ideographic one\u3000",
        "digits 0123456789 3.14 -1 １２ ½",
        "Task: open, State: 1 2 -1;\nAction: Task: ",
        "▁ is the mark of a space ▁▁",
        " \n ",
    ],
    [
        "\u200bcafé cafe\u0301 ﬁ İ ß Å",
        "\"it's\", they'LL \\ / {state} {instruction} %s",
        "👩🏽\u200d🔧 🇩🇪 𝔘 \ufffd",
        "возьми أغلق الدرج नमस्ते ไทย 赤いブロック ﾊﾟ",
        "pick up the red cube. " * 9,
    ],
    ["a < b > c <b>bold</b> [INST] |im_end|", "aaaaaaaa" * 20, "\x7f\x1b\u0085\u2028x\u2029", "Open\vThe\fDrawer ", "é" * 150],
]
"""Five for each seed. The first: plain; underscores, a newline, runs of spaces, a tab, white space at both ends; empty; not ASCII; longer
than any maximum. The others: newlines at either end, white space only, spaces that are not ASCII, digits, the prompt's own words, signs
that are composed or not, other scripts, texts near the maximum, control characters. None has the text of a special token, which
transformers reads as that token, and tendon and SentencePiece as text."""

INSTRUCTIONS = SETS[SEED % len(SETS)]
