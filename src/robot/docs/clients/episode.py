"""One episode on one WebSocket, taken up again where it broke off; prints every chunk as a line of JSON.
Needs: pip install websockets (12 or newer), the key in TENDON_API_KEY. One frame per camera, in their order:
python3 episode.py BASE_URL MODEL CHUNKS STATE.json FRAME.jpg FRAME.jpg FRAME.jpg [--yes-random]"""
import json, os, re, sys, time, uuid
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import connect

base, model, chunks, state_file, *frame_files = [word for word in sys.argv[1:] if word != "--yes-random"]
state = json.load(open(state_file))
frames = [open(name, "rb").read() for name in frame_files]
headers = {"Authorization": f"Bearer {os.environ['TENDON_API_KEY']}"}
opening = {"model": model, "instruction": "fold the towel", "session_id": f"episode-{uuid.uuid4()}"}
step, due, pause_s = 0, 1, 0
RANDOM = "random weights, or no model: never move a real arm with these rows; --yes-random goes on"
PASSING = r"\w+_(unavailable|outcome_unknown|failure|busy|replica_free|protocol_error)|internal_error"

def ask(ws, kind, **fields):
    ws.send(json.dumps({"type": kind, **fields}))
    said = json.loads(ws.recv())
    if said["type"] == "error" and not (said["closing"] and re.fullmatch(PASSING, said["code"])):
        sys.exit(f"{said['code']}: {said['message']}")  # Sent again, it would be refused again.
    if said["type"] == "error" or said.get("reason") not in (None, "session_close"): raise ConnectionError(said)
    return said

while step < int(chunks):
    time.sleep(pause_s)
    try:
        with connect(base.replace("http", "ws", 1) + "/v1/responses", additional_headers=headers) as ws:
            if (said := ask(ws, "session.open", **opening))["step"] == step: due = said["next_frames_per_camera"]
            if said.get("bundle") == "reference":
                if "--yes-random" not in sys.argv: sys.exit(RANDOM)
                print(RANDOM, file=sys.stderr)
            while step < int(chunks):
                for camera, jpeg in enumerate(frames):  # A robot sends all since the last time, oldest first.
                    for _ in range(due): ws.send(bytes([camera]) + jpeg)
                chunk = ask(ws, "observation", robot_state=state, observation_id=str(step), expected_step=step)
                print(json.dumps(chunk), flush=True)
                step, due, pause_s = step + 1, chunk["next_frames_per_camera"], 0
            ask(ws, "session.close")
    except (OSError, WebSocketException) as broken:
        refused = isinstance(broken, InvalidStatus) and broken.response.status_code < 500  # As 401: a wrong key.
        if refused or pause_s == 16: sys.exit(f"{broken}; not tried again")
        print(broken, file=sys.stderr)
        pause_s = 2 * pause_s or 1
