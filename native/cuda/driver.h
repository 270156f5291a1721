/**
 * An NVIDIA driver that the CPU plays, for tests: the calls of native/src/gpu/calls.rs, on the memory of the process. A launch has run when
 * the call returns. It shows that the host's code and the kernels agree, and nothing about a real driver.
 *
 * Memory, copies, modules and launches need a current context on their thread; any thread may call. A read or write outside of an
 * allocation crashes. `cpu_backwards(1)` reverses the order of blocks and threads (target.h); `cpu_memory_left(bytes)` bounds one
 * allocation; `cpu_launches_refused(1)` fails each launch as one whose kernel cannot be loaded. Contexts, streams, events and registered
 * host memory are in driver_host.h.
 */
#pragma once
#include <sys/mman.h>

#include "target.h"

namespace cpu {

constexpr int SUCCESS = 0, OUT_OF_MEMORY = 2, NO_DEVICE = 101, BAD_IMAGE = 200, NO_BINARY = 209, NOT_FOUND = 500;
constexpr uint32_t FAT_BINARY = 0xba55ed50u;

inline bool backwards = false;
inline size_t memory_left = SIZE_MAX;
inline bool launches_refused = false;

/** The byte that new memory begins with, since a device's is undefined, and the byte behind it. */
constexpr uint8_t STALE = 0xa5;
constexpr size_t PAGE = 4096, ALIGNMENT = 16;

/** A mapping, and the allocation in it. */
struct Mapping {
    uint8_t *start, *given;
    size_t bytes, length;
};

inline std::vector<Mapping> mappings;

/** Memory that ends with a mapping, up to its alignment: an access behind it crashes. */
inline uint8_t *guarded(size_t bytes) {
    const size_t used = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, whole = (used + PAGE - 1) / PAGE * PAGE;
    void *mapped = mmap(nullptr, whole + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) fail("no memory");
    uint8_t *start = static_cast<uint8_t *>(mapped);
    if (mprotect(start + whole, PAGE, PROT_NONE) != 0) fail("no guard page");
    memset(start, STALE, whole);
    mappings.push_back({start, start + whole - used, bytes, whole + PAGE});
    return mappings.back().given;
}

inline void release(uint8_t *given) {
    for (size_t at = 0; at < mappings.size(); at++) {
        const Mapping found = mappings[at];
        if (found.given != given) continue;
        const uint8_t *end = found.start + found.length - PAGE;
        for (const uint8_t *byte = found.start; byte < given; byte++) {
            if (*byte != STALE) fail("a kernel has written in front of its memory");
        }
        for (const uint8_t *byte = given + found.bytes; byte < end; byte++) {
            if (*byte != STALE) fail("a kernel has written behind its memory");
        }
        munmap(found.start, found.length);
        mappings.erase(mappings.begin() + static_cast<long>(at));
        return;
    }
    fail("memory was freed that was not allocated");
}

}  // namespace cpu

#include "driver_host.h"

extern "C" {

void cpu_backwards(int backwards) { cpu::backwards = backwards != 0; }

void cpu_memory_left(size_t bytes) { cpu::memory_left = bytes; }
void cpu_launches_refused(int refused) { cpu::launches_refused = refused != 0; }

int cuInit(unsigned) { return cpu::SUCCESS; }

int cuDriverGetVersion(int *version) {
    *version = 13000;
    return cpu::SUCCESS;
}

int cuDeviceGetCount(int *count) {
    *count = 1;
    return cpu::SUCCESS;
}

int cuDeviceGet(int *device, int index) {
    *device = index;
    return index == 0 ? cpu::SUCCESS : cpu::NO_DEVICE;
}

int cuDeviceGetName(char *name, int length, int) {
    snprintf(name, static_cast<size_t>(length), "a CPU");
    return cpu::SUCCESS;
}

int cuDeviceGetAttribute(int *value, int, int) {
    *value = 0;
    return cpu::SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *bytes, int) {
    *bytes = cpu::device_free + cpu::device_used;
    return cpu::SUCCESS;
}

int cuModuleLoadData(void **module, const void *image) {
    CPU_HOST_CALL
    *module = &cpu::backwards;
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    return magic == cpu::FAT_BINARY ? cpu::SUCCESS : cpu::BAD_IMAGE;
}

int cuModuleUnload(void *) {
    CPU_RELEASE_CALL
    return cpu::SUCCESS;
}

int cuModuleGetFunction(void **function, void *, const char *name) {
    CPU_HOST_CALL
    for (cpu::Entry &entry : cpu::entries()) {
        if (strcmp(entry.name, name) != 0) continue;
        *function = &entry;
        return cpu::SUCCESS;
    }
    return cpu::NOT_FOUND;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    CPU_HOST_CALL
    if (bytes > cpu::memory_left) return cpu::OUT_OF_MEMORY;
    *address = reinterpret_cast<uint64_t>(cpu::guarded(bytes));
    cpu::counts.memories++;
    return cpu::SUCCESS;
}

int cuMemFree_v2(uint64_t address) {
    CPU_RELEASE_CALL
    cpu::release(reinterpret_cast<uint8_t *>(address));
    cpu::counts.memories--;
    return cpu::SUCCESS;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *) {
    CPU_HOST_CALL
    if (bytes > 0) memcpy(reinterpret_cast<void *>(to), from, bytes);
    return cpu::SUCCESS;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *) {
    CPU_HOST_CALL
    if (bytes > 0) memcpy(to, reinterpret_cast<const void *>(from), bytes);
    return cpu::SUCCESS;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *) {
    CPU_HOST_CALL
    if (bytes > 0) memcpy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
    return cpu::SUCCESS;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned, void *,
                   void **params, void **) {
    {
        CPU_HOST_CALL
    }
    if (cpu::launches_refused) return cpu::NO_BINARY;
    const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    static_cast<cpu::Entry *>(function)->run(grid, block, params, cpu::backwards);
    return cpu::SUCCESS;
}

int cuGetErrorName(int code, const char **name) {
    *name = code == cpu::OUT_OF_MEMORY        ? "CUDA_ERROR_OUT_OF_MEMORY"
            : code == cpu::BAD_IMAGE          ? "CUDA_ERROR_INVALID_IMAGE"
            : code == cpu::NO_BINARY          ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
            : code == cpu::INVALID_CONTEXT    ? "CUDA_ERROR_INVALID_CONTEXT"
            : code == cpu::NOT_READY          ? "CUDA_ERROR_NOT_READY"
            : code == cpu::ALREADY_REGISTERED ? "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"
            : code == cpu::NOT_REGISTERED     ? "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"
            : code == cpu::INVALID_VALUE      ? "CUDA_ERROR_INVALID_VALUE"
                                              : "CUDA_ERROR_NOT_FOUND";
    return cpu::SUCCESS;
}

}
