"""Where the robot peers get their rows from: nowhere, or the reference bundle on ONNX Runtime."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image
from policy_shape import COLUMNS, ROWS
from tokenizers import Tokenizer

ZERO_ROWS = np.zeros((ROWS, COLUMNS), dtype=np.float32)
# What the bundle reads, and what a server without a model makes too where its own model's image work is not public.
SIZE_PX = 112
MEAN, STD = 0.5, 0.5


def image_tensor(picture: Image.Image) -> np.ndarray:
    """[3, height, width], float32: Pillow's antialiased bilinear, scaled to 0..1, normalised."""
    resized = picture.resize((SIZE_PX, SIZE_PX), Image.Resampling.BILINEAR)
    scaled = (np.asarray(resized, dtype=np.float32) * (1 / 255) - MEAN) / STD
    return scaled.transpose(2, 0, 1)


def affine(norm: str, stats: dict[str, list[float]], index: int) -> tuple[float, float]:
    """Scale and offset of a column: robot units = scale * model value + offset."""
    if norm == "none":
        return 1.0, 0.0
    low, high = stats["q01"][index], stats["q99"][index]
    scale = (high - low + 1e-6) / 2
    return scale, low + scale


class Bundle:
    """prefill.onnx once, then denoise.onnx in Euler steps, each by the runtime's plain `run`."""

    def __init__(self, folder: Path, threads: int) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        norm = json.loads((folder / "norm.json").read_text())
        image = manifest["image"]
        assert (image["width"], image["height"], image["resize"]) == (SIZE_PX, SIZE_PX, "stretch")
        assert image["mean"] == [MEAN] * 3 and image["std"] == [STD] * 3
        self.tolerance: float = manifest["parity"]["tolerance"]
        self.export_id: str = manifest["export_id"]
        self.flow = manifest["flow"]
        self.prompt = manifest["prompt"]
        self.latent_width: int = manifest["action"]["width"]
        self.state = affines(manifest["state"]["columns"], norm["state"])
        self.action = affines(manifest["action"]["columns"], norm["action"])
        self.least = np.array([column["min"] for column in manifest["action"]["columns"]])
        self.most = np.array([column["max"] for column in manifest["action"]["columns"]])
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenized: dict[str, list[int]] = {}
        self.prefill = session(folder / "prefill.onnx", threads)
        self.denoise = session(folder / "denoise.onnx", threads)
        self.cache_names = [output.name for output in self.prefill.get_outputs()]
        self.random = np.random.default_rng(0)

    def rows(self, pictures: list[Image.Image], state: np.ndarray, instruction: str, noise: np.ndarray | None = None) -> np.ndarray:
        """[30, 14] in robot units. Without `noise` it is drawn."""
        tokens, mask = self.tokens(instruction, state)
        images = np.stack([image_tensor(picture) for picture in pictures])[np.newaxis]
        cache = self.prefill.run(None, {"images": images, "tokens": tokens, "token_mask": mask})
        feed = dict(zip(self.cache_names, cache, strict=True))
        shape = (1, ROWS, self.latent_width)
        latent = self.random.standard_normal(shape, dtype=np.float32) if noise is None else noise.reshape(shape)
        times = np.linspace(self.flow["t_start"], self.flow["t_end"], self.flow["steps"] + 1)
        for now, after in zip(times, times[1:]):
            feed |= {"x_t": latent, "t": np.array([now], dtype=np.float32)}
            (velocity,) = self.denoise.run(None, feed)
            latent = latent + np.float32(after - now) * velocity
        scale, offset = self.action
        return np.clip(latent[0, :, :COLUMNS] * scale + offset, self.least, self.most).astype(np.float32)

    def tokens(self, instruction: str, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The padded prompt and its mask, [1, tokens_max] each."""
        ids: list[int] = []
        scale, offset = self.state
        for part in self.prompt["parts"]:
            if part["kind"] == "token":
                ids.append(part["id"])
            elif part["kind"] == "instruction":
                ids += self.instruction(instruction)
            else:
                level = (np.clip((state - offset) / scale, -1, 1) + 1) / 2 * (part["bins"] - 1)
                ids += (part["base"] + np.rint(level).astype(int)).tolist()
        tokens = np.full((1, self.prompt["tokens_max"]), self.prompt["pad_id"], dtype=np.int64)
        tokens[0, : len(ids)] = ids
        return tokens, np.arange(tokens.shape[1])[np.newaxis] < len(ids)

    def instruction(self, text: str) -> list[int]:
        """Kept, as the service that this is compared with keeps them."""
        if text not in self.tokenized:
            self.tokenized[text] = self.tokenizer.encode(" ".join(text.split()), add_special_tokens=False).ids
        return self.tokenized[text]


def affines(columns: list[dict[str, str]], stats: dict[str, list[float]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array([affine(column["norm"], stats, index) for index, column in enumerate(columns)])
    return pairs[:, 0], pairs[:, 1]


def session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    for kind in ("intra", "inter"):
        options.add_session_config_entry(f"session.{kind}_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def bundle_of(arguments: list[str]) -> Bundle | None:
    """`FOLDER THREADS` of a command line; nothing: no model."""
    if not arguments:
        return None
    folder, threads = arguments
    return Bundle(Path(folder), int(threads))
