"""Is a GPU faster at JPEG frames than libjpeg-turbo, and how far are its pixels off? Decodes real frames to RGB with both.

    python3 bench/peers/nvjpeg.py --turbojpeg LIBTURBOJPEG --json FILE FRAME.jpg…      # step `nvjpeg` of bench/gpu.sh

nvJPEG is used by its C interface (ctypes), from NVIDIA's wheel nvidia-nvjpeg or wherever the loader finds it. Not by torchvision, whose
decode_jpeg brings the nvJPEG of the CUDA that its wheel was built for, hides how it decodes, and needs the one PyTorch that fits it;
libnvjpeg.so.13 needs the driver alone. Every way of decoding that the card has is tried: the library's own choice, its kernels (gpu) and the
JPEG engines of data centre cards (engines).

A batch of 1, 3, 8 and 24 frames (a robot has three) is decoded in one call. The window of nvJPEG: from the bytes of the files to RGB in the
GPU's memory, until the stream is idle. That of libjpeg-turbo: to RGB in host memory, a thread for each frame, as many as there are cores;
the copy to the GPU, 0.7 MB for a frame of 640x360, comes on top. In microseconds p50 and p99; the two take turns, so that a machine that
slows down slows both. The last line but one is JSON, the last one a summary.

Ends with 3 where it cannot measure here, and with 4 where only the library is missing: why is the last line.
"""

import argparse
import ctypes
import glob
import json
import os
import site
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_ubyte, c_void_p
from pathlib import Path

BATCHES = (1, 3, 8, 24)
WAYS = {"default": 0, "gpu": 2, "engines": 3}
NAMES = ("libnvjpeg.so.13", "libnvjpeg.so.12")
# The one that `tendon setup gpu` fetches.
PACKAGE = "nvidia-nvjpeg==13.3.2.43"
RGB_INTERLEAVED = 5
STATUS = (
    "success,not initialised,invalid parameter,bad JPEG,JPEG not supported,allocator failed,execution failed,no such hardware,"
    "internal error,not implemented,incomplete"
).split(",")
WARM_ROUNDS = 10


class Missing(Exception):
    """Why nothing can be measured here, and the code to end with."""

    def __init__(self, reason, code=3):
        super().__init__(reason)
        self.code = code


class Image(ctypes.Structure):
    """nvjpegImage_t: four channels and their pitches."""

    _fields_ = [("channel", c_void_p * 4), ("pitch", c_size_t * 4)]


class Driver:
    """The memory and one stream of a card, by the CUDA driver: nvjpeg has a runtime of its own inside."""

    def __init__(self, number):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Missing(f"no NVIDIA driver: {error}") from error
        self.number = number
        device, context = c_int(), c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", byref(device), c_int(number))
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, c_int(128), device)
        self.name = name.value.decode()
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.stream = c_void_p()
        self.call("cuStreamCreate", byref(self.stream), 0)

    def call(self, name, *given):
        status = getattr(self.library, name)(*given)
        if status != 0:
            raise Missing(f"{name} of GPU {self.number} gave {status}")

    def memory(self, size):
        address = c_void_p()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address.value

    def read(self, address, size):
        host = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", host, c_void_p(address), c_size_t(size))
        return host.raw

    def idle(self):
        self.call("cuStreamSynchronize", self.stream)


def nvjpeg_library(folder):
    places = [folder] if folder else [*site.getsitepackages(), site.getusersitepackages()]
    found = [path for place in places for name in NAMES for path in glob.glob(f"{place}/nvidia/*/lib/{name}")]
    for path in (*found, *NAMES):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise Missing(f"there is no {NAMES[0]}: python3 -m pip install --no-deps --target FOLDER {PACKAGE}, then --library FOLDER", 4)


class Nvjpeg:
    """One way of decoding, for batches of one size."""

    def __init__(self, library, driver, way, batch, sizes):
        self.library, self.driver, self.batch = library, driver, batch
        self.handle, self.state = c_void_p(), c_void_p()
        self.call("nvjpegCreateEx", c_int(WAYS[way]), None, None, c_int(0), byref(self.handle))
        self.call("nvjpegJpegStateCreate", self.handle, byref(self.state))
        threads = min(batch, os.cpu_count() or 1)
        self.call("nvjpegDecodeBatchedInitialize", self.handle, self.state, c_int(batch), c_int(threads), c_int(RGB_INTERLEAVED))
        self.images = (Image * batch)()
        for image, (width, height) in zip(self.images, sizes):
            image.channel[0], image.pitch[0] = driver.memory(3 * width * height), 3 * width

    def call(self, name, *given):
        status = getattr(self.library, name)(*given)
        if status != 0:
            raise Missing(f"{name}: {STATUS[status] if status < len(STATUS) else status}")

    def decode(self, data, lengths):
        self.call("nvjpegDecodeBatched", self.handle, self.state, data, lengths, self.images, self.driver.stream)
        self.driver.idle()

    def close(self):
        for image in self.images:
            self.driver.call("cuMemFree_v2", c_void_p(image.channel[0]))
        self.call("nvjpegJpegStateDestroy", self.state)
        self.call("nvjpegDestroy", self.handle)


def nvjpeg_version(library):
    numbers = [c_int() for _ in range(3)]
    for kind, number in enumerate(numbers):
        library.nvjpegGetProperty(c_int(kind), byref(number))
    return ".".join(str(number.value) for number in numbers)


class Turbojpeg:
    """libjpeg-turbo as the engine uses it: exact DCT, smooth upsampling. A decompressor for each frame; ctypes lets others run meanwhile."""

    def __init__(self, path):
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise Missing(f"no libjpeg-turbo: {error}") from error
        self.library.tj3Init.restype = c_void_p
        self.library.tj3Decompress8.argtypes = [c_void_p, c_char_p, c_size_t, POINTER(c_ubyte), c_int, c_int]
        self.library.tj3DecompressHeader.argtypes = [c_void_p, c_char_p, c_size_t]
        self.library.tj3Get.argtypes = [c_void_p, c_int]
        self.library.tj3Destroy.argtypes = [c_void_p]

    def size(self, jpeg):
        handle = self.library.tj3Init(1)
        assert self.library.tj3DecompressHeader(handle, jpeg, len(jpeg)) == 0, "a frame is a JPEG"
        width, height = self.library.tj3Get(handle, 5), self.library.tj3Get(handle, 6)
        self.library.tj3Destroy(handle)
        return width, height

    def decode(self, jpeg, width, rgb):
        handle = self.library.tj3Init(1)
        status = self.library.tj3Decompress8(handle, jpeg, len(jpeg), rgb, 3 * width, 0)
        self.library.tj3Destroy(handle)
        assert status == 0, "libjpeg-turbo decodes a frame"


def figures(times_us):
    ordered = sorted(times_us)
    return {"p50_us": round(ordered[len(ordered) // 2], 1), "p99_us": round(ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)], 1)}


def timed(work):
    began = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - began) / 1000


def measured(batch, jpegs, sizes, given, gpu):
    """p50 and p99 of one batch by each way, and the RGB of its frames by each way."""
    turbo, driver, library = gpu
    frames = [(jpegs[at % len(jpegs)], sizes[at % len(jpegs)]) for at in range(batch)]
    buffers = [(c_ubyte * (3 * width * height))() for _, (width, height) in frames]
    data = (c_char_p * batch)(*[jpeg for jpeg, _ in frames])
    lengths = (c_size_t * batch)(*[len(jpeg) for jpeg, _ in frames])
    refused, ways = {}, {}
    for way in WAYS if library else ():
        try:
            decoder = Nvjpeg(library, driver, way, batch, [size for _, size in frames])
            decoder.decode(data, lengths)
            ways[way] = decoder
        except Missing as reason:
            refused[way] = str(reason)
    with ThreadPoolExecutor(min(batch, os.cpu_count() or 1)) as pool:

        def on_cores():
            list(pool.map(lambda at: turbo.decode(frames[at][0], frames[at][1][0], buffers[at]), range(batch)))

        works = {"libjpeg-turbo": on_cores} | {way: lambda decoder=decoder: decoder.decode(data, lengths) for way, decoder in ways.items()}
        times = {name: [] for name in works}
        for number in range(WARM_ROUNDS + given.rounds):
            for name, work in works.items():
                spent = timed(work)
                if number >= WARM_ROUNDS:
                    times[name].append(spent)
    pixels = {"libjpeg-turbo": [bytes(buffer) for buffer in buffers]}
    for way, decoder in ways.items():
        pixels[way] = [driver.read(image.channel[0], len(buffer)) for image, buffer in zip(decoder.images, buffers)]
        decoder.close()
    return {name: figures(spent) for name, spent in times.items()} | {way: {"refused": why} for way, why in refused.items()}, pixels


def differences(pixels, count):
    """Of each way the largest and the mean difference of a value from libjpeg-turbo's, over the first `count` frames."""
    right = pixels["libjpeg-turbo"][:count]
    out = {}
    for way, frames in pixels.items():
        if way == "libjpeg-turbo":
            continue
        # How often each difference is there: bytes are compared once.
        counts = [0] * 256
        for own, other in zip(frames[:count], right):
            for one, two in zip(own, other):
                counts[abs(one - two)] += 1
        total = sum(size * often for size, often in enumerate(counts))
        out[way] = {"max": max(size for size, often in enumerate(counts) if often), "mean": round(total / sum(counts), 4)}
    return out


def summary(batches, apart):
    """Of each batch the fastest way of nvJPEG beside libjpeg-turbo."""
    told = []
    for batch, ways in batches.items():
        own = {way: spent for way, spent in ways.items() if way != "libjpeg-turbo" and "p50_us" in spent}
        if not own:
            return f"no way of nvJPEG decodes a batch of {batch}: {ways}"
        best = min(own, key=lambda way: own[way]["p50_us"])
        cpu = ways["libjpeg-turbo"]
        told.append(f"{batch}: {own[best]['p50_us']:.0f}/{own[best]['p99_us']:.0f} {best} (CPU {cpu['p50_us']:.0f}/{cpu['p99_us']:.0f})")
    pixels = ", ".join(f"{way} {size['max']} mean {size['mean']}" for way, size in apart.items())
    return f"us p50/p99 of a batch of {', '.join(told)}; pixels differ at most by {pixels}"


def main():
    parser = argparse.ArgumentParser(description="nvJPEG beside libjpeg-turbo.")
    parser.add_argument("frames", type=Path, nargs="+", help="JPEG files")
    parser.add_argument("--turbojpeg", required=True, help="libturbojpeg.so.0, as the engine has it")
    parser.add_argument("--library", help="where pip --target has put nvidia-nvjpeg")
    parser.add_argument("--device", type=int, default=0, help="number of the GPU")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--json", type=Path, help="where the figures are written")
    parser.add_argument("--without-gpu", action="store_true", help="libjpeg-turbo alone: does this script work?")
    given = parser.parse_args()
    try:
        turbo = Turbojpeg(given.turbojpeg)
        driver = None if given.without_gpu else Driver(given.device)
        library = None if given.without_gpu else nvjpeg_library(given.library)
    except Missing as reason:
        print(reason)
        return reason.code
    if not all(frame.is_file() for frame in given.frames):
        print(f"there are no frames {given.frames[0]}; name a folder of JPEG files with --frames")
        return 3
    jpegs = [frame.read_bytes() for frame in given.frames]
    sizes = [turbo.size(jpeg) for jpeg in jpegs]
    batches, apart = {}, {}
    for batch in BATCHES:
        batches[batch], pixels = measured(batch, jpegs, sizes, given, (turbo, driver, library))
        apart = differences(pixels, len(jpegs))
    facts = {
        "gpu": driver and driver.name,
        "nvjpeg": library and nvjpeg_version(library),
        "cores": os.cpu_count(),
        "frames": [{"file": frame.name, "width": width, "height": height} for frame, (width, height) in zip(given.frames, sizes)],
        "batches": batches,
        "differs": apart,
    }
    if given.json:
        given.json.write_text(json.dumps(facts, indent=1) + "\n")
    print(json.dumps(facts))
    print(f"nvjpeg: {summary(batches, apart)}")
    return 0 if given.without_gpu or apart else 1


if __name__ == "__main__":
    sys.exit(main())
