"""The architecture of a model.json in PyTorch, with random weights: how long do prefill and denoise take, compiled and with CUDA graphs?

    python3 bench/peers/torch_policy.py bench/models/pi0.5/model.json --device cuda:0 --type bf16 --batches 1,2,4,8 --rounds 50

The peer of `tendon bench gpu --torch PYTHON`, which calls it. Written as one would write the model for PyTorch: fused attention
(scaled_dot_product_attention), weights of the queries, keys and values joined, all products in the type that is asked for, one graph for
prefill and one for all flow steps. What is computed is what the bundle's graphs compute: the same products over the same tokens. The last
line of what it prints is JSON: medians of each batch size in milliseconds, by CUDA events, or by the wall clock on a CPU.

Outside the window: decoding frames, tokens, copies to the device, rows into robot units, the token of a state. PyTorch 2.5 or newer.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
WARM_ROUNDS = 5


def matrix(rows, columns):
    return nn.Linear(rows, columns, bias=False)


def rms(x):
    return F.rms_norm(x, (x.shape[-1],), eps=1e-6)


def rotated(x, cos, sin):
    """[B, H, N, D] by angles [N, D / 2]."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def angles(start, count, head_dim, device, kind):
    """Of `count` positions from `start` on, made on the device: a CUDA graph copies nothing from the host."""
    half = head_dim // 2
    frequencies = 10000.0 ** (-torch.arange(half, device=device, dtype=torch.float32) / half)
    all_angles = torch.arange(start, start + count, device=device, dtype=torch.float32)[:, None] * frequencies
    return all_angles.cos().to(kind), all_angles.sin().to(kind)


class Attention(nn.Module):
    """Queries, keys and values of x in one product; keys and values that came before are attended to as well."""

    def __init__(self, width, heads, kv_heads, head_dim, bias=False):
        super().__init__()
        self.sizes = (heads, kv_heads, head_dim)
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * head_dim, bias=bias)
        self.output = nn.Linear(heads * head_dim, width, bias=bias)

    def project(self, x, turn=None):
        heads, kv_heads, head_dim = self.sizes
        all_heads = self.qkv(x).unflatten(-1, (-1, head_dim)).transpose(1, 2)
        q, k, v = all_heads.split([heads, kv_heads, kv_heads], dim=1)
        return (q, k, v) if turn is None else (rotated(q, *turn), rotated(k, *turn), v)

    def forward(self, x, turn=None, past=()):
        q, k, v = self.project(x, turn)
        own = (k, v)
        for past_k, past_v in past:
            k, v = torch.cat([past_k, k], dim=2), torch.cat([past_v, v], dim=2)
        mixed = F.scaled_dot_product_attention(q, k, v, enable_gqa=self.sizes[0] != self.sizes[1])
        return self.output(mixed.transpose(1, 2).flatten(2)), own


class GatedMlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_up, self.down = matrix(width, 2 * hidden), matrix(hidden, width)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(F.gelu(gate, approximate="tanh") * up)


class VisionBlock(nn.Module):
    def __init__(self, width, heads, mlp):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attention = Attention(width, heads, heads, width // heads, bias=True)
        self.up, self.down = nn.Linear(width, mlp), nn.Linear(mlp, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))[0]
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class AdaptiveBlock(nn.Module):
    """A block that is scaled, shifted and gated by the time; with `text` it also attends to the text."""

    def __init__(self, size, heads, kv_heads, head_dim, text=False):
        super().__init__()
        width = size["width"]
        self.adaptive = nn.Linear(size["time_width"], 6 * width)
        self.attention = Attention(width, heads, kv_heads, head_dim)
        self.mlp = GatedMlp(width, size["mlp"])
        self.asking = matrix(width, heads * head_dim) if text else None
        self.answer = matrix(heads * head_dim, width) if text else None
        self.head_dim = head_dim

    def forward(self, x, condition, turn, past, text=None):
        scale1, shift1, gate1, scale2, shift2, gate2 = self.adaptive(condition).chunk(6, dim=-1)
        mixed, own = self.attention(rms(x) * scale1 + shift1, turn, past)
        x = x + gate1 * mixed
        if text is not None:
            q = self.asking(rms(x)).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            x = x + self.answer(F.scaled_dot_product_attention(q, *text).transpose(1, 2).flatten(2))
        return x + gate2 * self.mlp(rms(x) * scale2 + shift2), own


class FlowVla(nn.Module):
    """pi0.5 and its like: a tower for each view, a language prefix, an expert on its cache."""

    def __init__(self, facts, kind):
        super().__init__()
        vision, language, expert = (facts["architecture"][part] for part in ("vision", "language", "expert"))
        self.facts, self.kind, self.head_dim = facts, kind, language["head_dim"]
        heads = (language["heads"], language["kv_heads"], language["head_dim"])
        patch, width = vision["patch"], vision["width"]
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.places = nn.Parameter(torch.zeros(facts["image"]["tokens"], width))
        self.tower = nn.ModuleList(VisionBlock(width, vision["heads"], vision["mlp"]) for _ in range(vision["layers"]))
        self.tower_norm, self.projection = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, language["width"])
        self.table = nn.Embedding(language.get("vocabulary", 1000), language["width"])
        layers = range(language["layers"])
        self.reading = nn.ModuleList(Attention(language["width"], *heads) for _ in layers[:-1])
        self.thinking = nn.ModuleList(GatedMlp(language["width"], language["mlp"]) for _ in layers[:-1])
        # Of the last layer only keys and values are needed.
        self.last = matrix(language["width"], 2 * language["kv_heads"] * language["head_dim"])
        self.acting = nn.ModuleList(AdaptiveBlock(expert, *heads) for _ in layers)
        action = facts["action"]["width"]
        self.action_in, self.action_out = nn.Linear(action, expert["width"]), nn.Linear(expert["width"], action)
        self.final = nn.Linear(expert["time_width"], 2 * expert["width"])
        self.time_width, self.rows = expert["time_width"], facts["action"]["rows"]

    def inputs(self, batch, device):
        image, cameras, text = self.facts["image"], len(self.facts["cameras"]), self.facts["prompt"]["tokens_max"]
        pictures = torch.rand(batch, cameras, 3, image["height"], image["width"], device=device, dtype=self.kind)
        return pictures, torch.randint(0, self.table.num_embeddings, (batch, text), device=device)

    def prefill(self, pictures, tokens):
        batch = pictures.shape[0]
        x = self.patches(pictures.flatten(0, 1)).flatten(2).transpose(1, 2) + self.places
        for block in self.tower:
            x = block(x)
        seen = self.projection(self.tower_norm(x)).unflatten(0, (batch, -1)).flatten(1, 2)
        x = torch.cat([seen, self.table(tokens)], dim=1)
        turn = angles(0, x.shape[1], self.head_dim, x.device, self.kind)
        caches = []
        for attention, mlp in zip(self.reading, self.thinking):
            mixed, own = attention(rms(x), turn)
            caches.append(own)
            x = x + mixed
            x = x + mlp(rms(x))
        k, v = self.last(rms(x)).unflatten(-1, (-1, self.head_dim)).transpose(1, 2).chunk(2, dim=1)
        return [*caches, (rotated(k, *turn), v)]

    def denoise(self, caches):
        batch, _, length, _ = caches[0][0].shape
        device, steps = caches[0][0].device, self.facts["flow"]["steps"]
        turn = angles(length, self.rows, self.head_dim, device, self.kind)
        x = torch.ones(batch, self.rows, self.facts["action"]["width"], device=device, dtype=self.kind)
        for step in range(steps):
            condition = torch.full((1, self.time_width), step / steps, device=device, dtype=self.kind)
            hidden = self.action_in(x)
            for block, cache in zip(self.acting, caches):
                hidden, _ = block(hidden, condition, turn, [cache])
            scale, shift = self.final(condition).chunk(2, dim=-1)
            x = x - self.action_out(rms(hidden) * scale + shift) / steps
        return x


class WorldAction(nn.Module):
    """DreamZero and its like: one transformer over observed frames, frames to come and rows, both branches of the guidance as a batch."""

    def __init__(self, facts, kind):
        super().__init__()
        size = facts["architecture"]["transformer"]
        self.facts, self.kind, self.head_dim, self.heads = facts, kind, size["head_dim"], size["heads"]
        self.branches = 1 if facts["guidance"] is None else 2
        memory, later = facts["memory"], facts["frames"]["later"]
        covered = later // memory["later"]
        self.encode = nn.Conv2d(3 * covered, size["channels"], size["patch"], stride=size["patch"])
        self.covered, self.block_tokens, self.memory_tokens = covered, memory["later"] * memory["tokens"], memory["window"] * memory["tokens"]
        self.latent_in, self.latent_out = nn.Linear(size["channels"], size["width"]), nn.Linear(size["width"], size["channels"])
        self.table = nn.Embedding(1000, size["width"])
        heads = (size["heads"], size["heads"], size["head_dim"])
        self.blocks = nn.ModuleList(AdaptiveBlock(size, *heads, text=True) for _ in range(size["layers"]))
        self.texts = nn.ModuleList(matrix(size["width"], 2 * size["heads"] * size["head_dim"]) for _ in range(size["layers"]))
        action, state = facts["action"]["width"], facts["state"]["width"]
        self.action_in, self.action_out = nn.Linear(action, size["width"]), nn.Linear(size["width"], action)
        self.state_in, self.final = nn.Linear(state, size["width"]), nn.Linear(size["time_width"], 2 * size["width"])
        self.size = size

    def inputs(self, batch, device):
        """An observation that finds a full memory but for its own block. Of such a model there is one at a time."""
        image, cameras = self.facts["image"], len(self.facts["cameras"])
        latents = self.facts["memory"]["later"]
        pictures = torch.rand(cameras * latents, 3 * self.covered, image["height"], image["width"], device=device, dtype=self.kind)
        tokens = torch.randint(0, 1000, (self.branches, self.facts["prompt"]["tokens_max"]), device=device)
        shape = (self.branches, self.heads, self.memory_tokens - self.block_tokens, self.head_dim)
        memory = [tuple(torch.rand(shape, device=device, dtype=self.kind) for _ in range(2)) for _ in self.blocks]
        return pictures, tokens, memory

    def prefill(self, pictures, tokens, memory):
        read = self.table(tokens)
        texts = [project(read).unflatten(-1, (2, self.heads, self.head_dim)).permute(2, 0, 3, 1, 4).unbind(0) for project in self.texts]
        seen = self.latent_in(self.encode(pictures).flatten(2).transpose(1, 2).flatten(0, 1))
        x = seen.expand(self.branches, -1, -1)
        turn = angles(0, x.shape[1], self.head_dim, x.device, self.kind)
        condition = torch.zeros(1, self.size["time_width"], device=x.device, dtype=self.kind)
        caches = []
        for block, past, text in zip(self.blocks, memory, texts):
            x, own = block(x, condition, turn, [past], text)
            caches.append((tuple(torch.cat(pair, dim=2) for pair in zip(past, own)), text))
        return caches

    def denoise(self, caches):
        (k, _), _ = caches[0]
        device, steps, rows = k.device, self.facts["flow"]["steps"], self.facts["action"]["rows"]
        x = torch.ones(1, rows, self.facts["action"]["width"], device=device, dtype=self.kind)
        z = torch.ones(1, self.block_tokens, self.size["channels"], device=device, dtype=self.kind)
        told = self.state_in(torch.ones(1, 1, self.facts["state"]["width"], device=device, dtype=self.kind))
        turn = angles(0, self.block_tokens + 1 + rows, self.head_dim, device, self.kind)
        for step in range(steps):
            condition = torch.full((1, self.size["time_width"]), step / steps, device=device, dtype=self.kind)
            hidden = torch.cat([self.latent_in(z), told, self.action_in(x)], dim=1).expand(self.branches, -1, -1)
            for block, (past, text) in zip(self.blocks, caches):
                hidden, _ = block(hidden, condition, turn, [past], text)
            scale, shift = self.final(condition).chunk(2, dim=-1)
            normed = rms(hidden) * scale + shift
            x = x - self.action_out(normed[:1, -rows:]) / steps
            z = z - self.latent_out(normed[:1, : self.block_tokens]) / steps
        return x


def build(facts, kind, device):
    family = {"flow-vla": FlowVla, "world-action": WorldAction}[facts["family"]]
    with torch.device("meta"):
        model = family(facts, kind)
    # Made on the device in its type: a model of billions of weights never lies on the host. Zeros would be multiplied faster.
    model = model.to(kind).to_empty(device=device)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.02)
    return model.eval()


def timed(work, device, rounds):
    """Milliseconds of each round."""
    for _ in range(WARM_ROUNDS):
        work()
    times = []
    for _ in range(rounds):
        if device.type == "cuda":
            begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begun.record()
            work()
            ended.record()
            torch.cuda.synchronize(device)
            times.append(begun.elapsed_time(ended))
        else:
            before = time.perf_counter()
            work()
            times.append(1000 * (time.perf_counter() - before))
    return times


def main():
    parser = argparse.ArgumentParser(description="A model's architecture in PyTorch, timed.")
    parser.add_argument("model", type=Path, help="its model.json")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--type", choices=TYPES, default="bf16")
    parser.add_argument("--batches", default="1")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--eager", action="store_true", help="without torch.compile")
    given = parser.parse_args()
    facts, device = json.loads(given.model.read_text()), torch.device(given.device)
    torch.manual_seed(facts["architecture"]["seed"])
    model = build(facts, TYPES[given.type], device)
    prefill, denoise = model.prefill, model.denoise
    if not given.eager:
        # On a GPU each is one CUDA graph; a CPU has none.
        options = {"mode": "max-autotune"} if device.type == "cuda" else {}
        prefill, denoise = (torch.compile(part, fullgraph=True, dynamic=False, **options) for part in (prefill, denoise))
    batches = []
    with torch.inference_mode():
        for batch in map(int, given.batches.split(",")):
            inputs = model.inputs(batch, device)
            before = timed(lambda: prefill(*inputs), device, given.rounds)
            # Copied: what a CUDA graph has given is overwritten by its next run.
            cache = nested(lambda tensor: tensor.clone(), prefill(*inputs))
            after = timed(lambda: denoise(cache), device, given.rounds)
            batches.append({"batch": batch, "prefill": statistics.median(before), "denoise": statistics.median(after)})
    compiled = "eager" if given.eager else "compiled, CUDA graphs" if device.type == "cuda" else "compiled"
    clock = "CUDA events" if device.type == "cuda" else "wall clock"
    count = sum(weight.numel() for weight in model.parameters())
    print(json.dumps({"version": torch.__version__, "how": f"{given.type}, {compiled}, {clock}", "weights": count, "batches": batches}))
    return 0


def nested(change, value):
    return change(value) if isinstance(value, torch.Tensor) else type(value)(nested(change, one) for one in value)


if __name__ == "__main__":
    sys.exit(main())
