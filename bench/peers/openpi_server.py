"""A server in the form of openpi's: `openpi_server.py [BUNDLE THREADS]` prints its address.

WebSocket without compression, messages in msgpack with numpy arrays, raw pixels. The first message is the server's description.
Inference holds the event loop, as there. Image work without a bundle: resize with pad to 224, by the client package's own function,
then floats from -1 to 1.
"""

import asyncio
import sys
import time
from typing import Any

import numpy as np
from line_process import end_with_parent, say
from openpi_client import image_tools, msgpack_numpy
from PIL import Image
from policy import ZERO_ROWS, bundle_of
from policy_shape import CAMERAS
from websockets.asyncio.server import ServerConnection, serve

EDGE_PX = 224
bundle = bundle_of(sys.argv[1:])


def scaled(image: np.ndarray) -> np.ndarray:
    """What openpi's models are fed: -1 to 1."""
    return image.astype(np.float32) / 255 * 2 - 1


def infer(observation: dict[str, Any]) -> np.ndarray:
    frames = [observation["images"][camera] for camera in CAMERAS]
    if bundle is None:
        for frame in frames:
            scaled(image_tools.resize_with_pad(frame, EDGE_PX, EDGE_PX))
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


end_with_parent()
asyncio.run(main())
