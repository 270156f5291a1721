"""The seed of weights, statistics, states, pictures, their sizes, noise and words: `--seed N` on the command line, 0 unless given. The vectors
of the repository are those of seed 0."""

import sys

SEED = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0


def seeded(seed):
    """`seed` as it is for seed 0, another number for each other one."""
    return seed + 1_000_003 * SEED
