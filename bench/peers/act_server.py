"""A server in the form of MolmoAct2's YAM example: `act_server.py [BUNDLE THREADS]` prints its address.

FastAPI on uvicorn, `POST /act`, JSON with numpy arrays as json_numpy writes them; a camera's frame is the bytes of its JPEG, decoded
with Pillow. Requests run on uvicorn's threads, the model behind a lock. Without a bundle: decode, and resize as for the bundle.
"""

import io
import socket
import sys
import threading
import time
from typing import Any

import json_numpy
import numpy as np
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from line_process import end_with_parent, say
from PIL import Image
from policy import ZERO_ROWS, bundle_of, image_tensor
from policy_shape import CAMERAS

BACKLOG = 128
bundle = bundle_of(sys.argv[1:])
lock = threading.Lock()
app = FastAPI()


def rows(observation: dict[str, Any]) -> np.ndarray:
    frames = [observation[f"{camera}_cam"] for camera in CAMERAS]
    pictures = [Image.open(io.BytesIO(frame.tobytes())).convert("RGB") for frame in frames]
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


@app.post("/act")
async def act(request: Request) -> Response:
    text = await run_in_threadpool(answer, await request.body())
    return Response(text, media_type="application/json")


end_with_parent()
listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
say(f"http://127.0.0.1:{listener.getsockname()[1]}")
uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])
