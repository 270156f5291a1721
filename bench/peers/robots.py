"""The robots' side of the comparison: servers in the form of openpi's and of MolmoAct2's YAM example, robots of both, and their policy.

    robots.py serve act|openpi [BUNDLE THREADS]            prints its address
    robots.py robot act|openpi URL FOLDER STATE INSTRUCTION  orders on standard input
    robots.py check BUNDLE                                 prints how far the policy's rows are from the bundle's parity vector, JSON

`act`: FastAPI on uvicorn, `POST /act`, JSON with numpy arrays as json_numpy writes them; a camera's frame is the bytes of its JPEG, decoded
with Pillow. Requests run on uvicorn's threads, the model behind a lock. `openpi`: WebSocket without compression, messages in msgpack with
numpy arrays, raw pixels; the first message is the server's description, and inference holds the event loop, as there.

Without a bundle the rows are zeros and the image work is done all the same: for `act` decode and resize as for the bundle, for `openpi`
resize with pad to 224 by the client package's own function, then floats from -1 to 1.
"""

import asyncio
import io
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np
from PIL import Image

# Cameras in the order of the wire, rows and columns of a chunk.
CAMERAS = ("top", "left", "right")
ROWS, COLUMNS = 30, 14
ZERO_ROWS = np.zeros((ROWS, COLUMNS), dtype=np.float32)
# What the bundle reads, and what a server without a model makes too where its own model's image work is not public.
SIZE_PX = 112
MEAN, STD = 0.5, 0.5
OPENPI_EDGE_PX = 224


def say(line: str) -> None:
    print(line, flush=True)


def decoded(jpeg: bytes) -> Image.Image:
    return Image.open(io.BytesIO(jpeg)).convert("RGB")


def image_tensor(picture: Image.Image) -> np.ndarray:
    """[3, height, width], float32: Pillow's antialiased bilinear, scaled to 0..1, normalised."""
    resized = picture.resize((SIZE_PX, SIZE_PX), Image.Resampling.BILINEAR)
    scaled = (np.asarray(resized, dtype=np.float32) * (1 / 255) - MEAN) / STD
    return scaled.transpose(2, 0, 1)


class Bundle:
    """The reference bundle on ONNX Runtime: prefill.onnx once, then denoise.onnx in Euler steps, each by the runtime's plain `run`."""

    def __init__(self, folder: Path, threads: int) -> None:
        from tokenizers import Tokenizer

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
    """Scale and offset of each column: robot units = scale * model value + offset."""

    def affine(norm: str, index: int) -> tuple[float, float]:
        if norm == "none":
            return 1.0, 0.0
        low, high = stats["q01"][index], stats["q99"][index]
        scale = (high - low + 1e-6) / 2
        return scale, low + scale

    pairs = np.array([affine(column["norm"], index) for index, column in enumerate(columns)])
    return pairs[:, 0], pairs[:, 1]


def session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    for kind in ("intra", "inter"):
        options.add_session_config_entry(f"session.{kind}_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def serve_act(bundle: Bundle | None) -> None:
    import socket

    import json_numpy
    import uvicorn
    from fastapi import FastAPI, Request, Response
    from fastapi.concurrency import run_in_threadpool

    lock = threading.Lock()
    app = FastAPI()

    def rows(observation: dict[str, Any]) -> np.ndarray:
        pictures = [decoded(observation[f"{camera}_cam"].tobytes()) for camera in CAMERAS]
        if bundle is None:
            for picture in pictures:
                image_tensor(picture)
            return ZERO_ROWS
        with lock:
            return bundle.rows(pictures, observation["state"], observation["instruction"])

    def answer(body: bytes) -> str:
        began_s = time.monotonic()
        actions = rows(json_numpy.loads(body))
        return json_numpy.dumps({"actions": actions, "dt_ms": (time.monotonic() - began_s) * 1000})

    async def act(request: Request) -> Response:
        text = await run_in_threadpool(answer, await request.body())
        return Response(text, media_type="application/json")

    app.post("/act")(act)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    say(f"http://127.0.0.1:{listener.getsockname()[1]}")
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])


def serve_openpi(bundle: Bundle | None) -> None:
    from openpi_client import image_tools, msgpack_numpy
    from websockets.asyncio.server import ServerConnection, serve

    def infer(observation: dict[str, Any]) -> np.ndarray:
        frames = [observation["images"][camera] for camera in CAMERAS]
        if bundle is None:
            for frame in frames:
                image_tools.resize_with_pad(frame, OPENPI_EDGE_PX, OPENPI_EDGE_PX).astype(np.float32) / 255 * 2 - 1
            return ZERO_ROWS
        pictures = [Image.fromarray(frame) for frame in frames]
        return bundle.rows(pictures, observation["state"], observation["prompt"])

    async def talk(connection: ServerConnection) -> None:
        packer = msgpack_numpy.Packer()
        await connection.send(packer.pack({"cameras": CAMERAS}))
        async for message in connection:
            began_s = time.monotonic()
            actions = infer(msgpack_numpy.unpackb(message))
            infer_ms = (time.monotonic() - began_s) * 1000
            await connection.send(packer.pack({"actions": actions, "server_timing": {"infer_ms": infer_ms}}))

    async def main() -> None:
        async with serve(talk, "127.0.0.1", 0, compression=None, max_size=None) as server:
            say(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            await server.serve_forever()

    asyncio.run(main())


Exchange = Callable[[], np.ndarray]


def act_robot(url: str, jpegs: dict[str, bytes], state: np.ndarray, instruction: str) -> Exchange:
    """`requests` with one kept connection. Making the JSON text comes before the measurement."""
    import json_numpy
    import requests

    frames = {f"{camera}_cam": np.frombuffer(jpeg, dtype=np.uint8) for camera, jpeg in jpegs.items()}
    body = json_numpy.dumps({**frames, "state": state, "instruction": instruction}).encode()
    connection = requests.Session()
    connection.trust_env = False

    def exchange() -> np.ndarray:
        response = connection.post(f"{url}/act", data=body, headers={"content-type": "application/json"})
        response.raise_for_status()
        return json_numpy.loads(response.content)["actions"]

    return exchange


def openpi_robot(url: str, jpegs: dict[str, bytes], state: np.ndarray, instruction: str) -> Exchange:
    """`websockets`, messages are openpi's. Decoding the camera's JPEG to pixels and packing the message come before the measurement."""
    from openpi_client import msgpack_numpy
    from websockets.sync.client import connect

    pixels = {camera: np.asarray(decoded(jpeg)) for camera, jpeg in jpegs.items()}
    message = msgpack_numpy.packb({"images": pixels, "state": state, "prompt": instruction})
    connection = connect(url, compression=None, max_size=None, proxy=None)
    connection.recv()

    def exchange() -> np.ndarray:
        connection.send(message)
        return msgpack_numpy.unpackb(connection.recv())["actions"]

    return exchange


def robot(form: str, url: str, folder: str, state: str, instruction: str) -> None:
    """Each line of standard input is a number of observations; the answer is the milliseconds of each as JSON."""
    paths = sorted(Path(folder).glob("*.jpg"))
    jpegs = dict(zip(CAMERAS, (path.read_bytes() for path in paths), strict=True))
    make = {"act": act_robot, "openpi": openpi_robot}[form]
    exchange = make(url, jpegs, np.array(json.loads(state), dtype=np.float32), instruction)
    say("ready")
    for line in sys.stdin:
        times_ms: list[float] = []
        for _ in range(int(line)):
            began_s = time.perf_counter()
            actions = exchange()
            times_ms.append((time.perf_counter() - began_s) * 1000)
            if actions.shape != (ROWS, COLUMNS):
                raise SystemExit(f"the server answered rows of shape {actions.shape}")
        say(json.dumps(times_ms))


def check(bundle_folder: str) -> None:
    """The parity vector holds an observation and the rows that an independent implementation computed for it."""
    sys.path.append(str(Path(__file__).parents[2] / "test/vectors"))
    from noise import noise

    folder = Path(bundle_folder)
    bundle = Bundle(folder, threads=1)
    vector = json.loads((folder / "parity/chunk.json").read_text())
    greatest = 0.0
    for observation in vector["observations"]:
        pictures = [Image.open(folder / "parity" / name).convert("RGB") for name in observation["frames"]]
        expected = np.array(observation["actions"])
        drawn = noise(bundle.export_id, vector["seed"], observation["step"], len(expected), bundle.latent_width).astype(np.float32)
        rows = bundle.rows(pictures, np.array(observation["state"]), vector["instruction"], drawn)
        greatest = max(greatest, float(np.abs(rows - expected).max()))
    print(json.dumps({"greatest": greatest, "tolerance": bundle.tolerance}))


def serve(form: str, *bundle: str) -> None:
    def end_with_parent() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()
    {"act": serve_act, "openpi": serve_openpi}[form](Bundle(Path(bundle[0]), int(bundle[1])) if bundle else None)


{"serve": serve, "robot": robot, "check": check}[sys.argv[1]](*sys.argv[2:])
