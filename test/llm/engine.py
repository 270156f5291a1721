"""Serves a model file with llama.cpp's server: engine.py MODEL. Prints its address in one line and ends with its standard input."""

import os
import sys

import xllamacpp

SLOTS = 4
CONTEXT_OF_SLOT = 8192

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {"tiny"}
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_parallel = SLOTS
params.n_ctx = CONTEXT_OF_SLOT * SLOTS
params.n_gpu_layers = 0
params.fit_params = False
params.warmup = False
params.cache_ram_mib = 0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
# At this size flash attention and half precision are several times slower on a CPU.
params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
params.ui = False
params.enable_reasoning = 0
params.verbosity = -1
# The plain distribution of the model: a random one repeats itself if its unlikely tokens are cut off.
params.sampling.temp = 1.0
params.sampling.top_k = 0
params.sampling.top_p = 1.0
params.sampling.min_p = 0.0

server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
# The process that started this one holds the other end: when it ends in any way, this one ends too.
sys.stdin.read()
os._exit(0)
