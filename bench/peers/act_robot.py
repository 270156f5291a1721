"""A robot of act_server.py: `act_robot.py URL FOLDER STATE INSTRUCTION`, orders on standard input.

The client library is `requests` with one kept connection. Making the JSON text comes before the measurement; from handing the text to
the library until the reply is parsed is measured.
"""

import sys
import time

import json_numpy
import numpy as np
import requests
from line_process import answer_orders
from robot_observation import Observation, check

url, *observed = sys.argv[1:]
observation = Observation(*observed)
frames = {f"{camera}_cam": np.frombuffer(jpeg, dtype=np.uint8) for camera, jpeg in observation.jpegs.items()}
body = json_numpy.dumps({**frames, "state": observation.state, "instruction": observation.instruction}).encode()
connection = requests.Session()
connection.trust_env = False


def drive(count: int) -> list[float]:
    times_ms: list[float] = []
    for _ in range(count):
        began_s = time.perf_counter()
        response = connection.post(f"{url}/act", data=body, headers={"content-type": "application/json"})
        response.raise_for_status()
        reply = json_numpy.loads(response.content)
        times_ms.append((time.perf_counter() - began_s) * 1000)
        check(reply["actions"])
    return times_ms


answer_orders(drive)
