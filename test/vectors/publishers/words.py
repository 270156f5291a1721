"""The words that stand-in tokenizers are trained on, and the instructions of the five cases.

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
