/** All kernels: one module for the driver, one library for the CPU (target.h has both builds). */
#include "chunk.cu"
#include "flow.cu"
#ifndef __CUDACC__
#include "driver.h"
#endif
