"""Downloads a file of a run, and goes on where the connection broke: python3 resume.py URL FILE, the key in TENDON_API_KEY."""

import os
import sys

import requests


def download(url: str, path: str) -> None:
    with requests.Session() as session, open(path, "wb") as file:
        session.headers["Authorization"] = "Bearer " + os.environ["TENDON_API_KEY"]
        etag = None
        while True:
            # If it is another file by now, it comes whole.
            headers = {} if etag is None else {"Range": f"bytes={file.tell()}-", "If-Range": etag}
            with session.get(url, headers=headers, stream=True, timeout=60) as answer:
                answer.raise_for_status()
                etag = answer.headers["ETag"]
                if answer.status_code == 200:
                    file.seek(0)
                    file.truncate()
                try:
                    for piece in answer.iter_content(1 << 16):
                        file.write(piece)
                    return
                except requests.exceptions.RequestException as error:
                    print(f"{type(error).__name__} after {file.tell()} bytes", flush=True)


download(*sys.argv[1:])
