"""A robot of openpi_server.py: `openpi_robot.py URL FOLDER STATE INSTRUCTION`, orders on standard input.

The client library is `websockets`, messages are openpi's. Decoding the camera's JPEG to pixels and packing the message come before
the measurement; from handing the packed message to the socket until the reply is unpacked is measured.
"""

import io
import sys
import time

import numpy as np
from line_process import answer_orders
from openpi_client import msgpack_numpy
from PIL import Image
from robot_observation import Observation, check
from websockets.sync.client import connect

url, *observed = sys.argv[1:]
observation = Observation(*observed)
pixels = {camera: np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB")) for camera, jpeg in observation.jpegs.items()}
message = msgpack_numpy.packb({"images": pixels, "state": observation.state, "prompt": observation.instruction})
connection = connect(url, compression=None, max_size=None, proxy=None)
connection.recv()


def drive(count: int) -> list[float]:
    times_ms: list[float] = []
    for _ in range(count):
        began_s = time.perf_counter()
        connection.send(message)
        reply = msgpack_numpy.unpackb(connection.recv())
        times_ms.append((time.perf_counter() - began_s) * 1000)
        check(reply["actions"])
    return times_ms


answer_orders(drive)
