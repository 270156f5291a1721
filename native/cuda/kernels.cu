/**
 * All kernels: one module for the driver, one library for the CPU (target.h says how each is built). The engine launches none of them
 * before a GPU has run them; native/tests/kernels does.
 */
#include "chunk.cu"
#include "flow.cu"
#include "frame.cu"
#ifndef __CUDACC__
#include "driver.h"
#endif
