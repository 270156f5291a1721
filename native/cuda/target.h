/**
 * One source, two targets. nvcc makes device code of a kernel. A C++ compiler makes a library whose loops run it on a CPU, so that every
 * kernel is tested without a GPU.
 *
 *   device   nvcc -std=c++17 -O3 -fmad=false -fatbin kernels.cu            (src/setup/gpu-kernels.mjs has the architectures)
 *   CPU      c++ -std=c++17 -O2 -ffp-contract=off -shared -fPIC -x c++ kernels.cu
 *
 * Both forbid contraction: a multiplication and an addition in one instruction round once, and the bits differ.
 *
 * On a CPU each kernel enters a list by its name; driver.h launches from there. A launch can run backwards, the last block and the last
 * thread first: a result that depends on the order is a race. The threads of a block with barriers are fibers, and each runs until it
 * waits. A thread makes one launch at a time. Warps, costs and undefined shared memory are not modelled.
 */
#pragma once
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__

#define DEVICE __device__ __forceinline__
#define CPU_ENTRY(kernel)
#define CPU_ENTRY_WITH_BARRIERS(kernel)

#else

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <math.h>
#include <utility>
#include <vector>

#define __global__
#define __shared__ static thread_local
#define DEVICE static inline

namespace cpu {

struct Index {
    unsigned x, y, z;
};

/** The indices of the running thread. */
inline thread_local Index thread_at, block_at, block_size, grid_size;

/** Makes thread number `thread` of its block the running one. */
inline void place(unsigned thread) {
    thread_at = {thread % block_size.x, thread / block_size.x % block_size.y, thread / block_size.x / block_size.y};
}

[[noreturn]] inline void fail(const char *what) {
    fprintf(stderr, "kernels on the CPU: %s\n", what);
    abort();
}

/** The threads of one block, each with its own stack. */
class Fibers {
  public:
    static constexpr size_t STACK_BYTES = 64 << 10;

    /** Runs `body` as each thread. A pass resumes all of them, up to their next barrier or end. */
    template <typename Body>
    void run(unsigned count, bool backwards, Body &body) {
        prepare(count);
        call = [](void *to) { (*static_cast<Body *>(to))(); };
        argument = &body;
        running = this;
        for (unsigned live = count; live > 0;) {
            unsigned ended = 0;
            for (unsigned turn = 0; turn < count; turn++) {
                current = backwards ? count - 1 - turn : turn;
                place(current);
                swapcontext(&scheduler, &threads[current]);
                ended += has_ended;
            }
            if (ended != 0 && ended != live) fail("some threads of a block ended while others wait at a barrier");
            live -= ended;
        }
        running = nullptr;
    }

    /** The barrier. */
    static void wait() {
        if (running == nullptr) fail("a kernel with barriers has an entry without them");
        running->has_ended = false;
        const unsigned self = running->current;
        swapcontext(&running->threads[self], &running->scheduler);
    }

  private:
    inline static thread_local Fibers *running = nullptr;
    ucontext_t scheduler;
    std::vector<ucontext_t> threads;
    std::vector<char *> stacks;
    void (*call)(void *) = nullptr;
    void *argument = nullptr;
    unsigned current = 0;
    bool has_ended = false;

    void prepare(unsigned count) {
        threads.resize(count);
        while (stacks.size() < count) stacks.push_back(static_cast<char *>(malloc(STACK_BYTES)));
        for (unsigned thread = 0; thread < count; thread++) {
            getcontext(&threads[thread]);
            threads[thread].uc_stack.ss_sp = stacks[thread];
            threads[thread].uc_stack.ss_size = STACK_BYTES;
            threads[thread].uc_link = &scheduler;
            makecontext(&threads[thread], &Fibers::begin, 0);
        }
    }

    static void begin() {
        Fibers *self = running;
        self->call(self->argument);
        self->has_ended = true;
    }

  public:
    ~Fibers() {
        for (char *stack : stacks) free(stack);
    }
};

template <typename... Args, size_t... At>
void call(void (*kernel)(Args...), void **params, std::index_sequence<At...>) {
    kernel(*static_cast<Args *>(params[At])...);
}

/** Runs every thread of every block of a launch. */
template <bool has_barriers, typename... Args>
void launch(void (*kernel)(Args...), const unsigned grid[3], const unsigned block[3], void **params, bool backwards) {
    const unsigned blocks = grid[0] * grid[1] * grid[2], threads = block[0] * block[1] * block[2];
    if (blocks == 0 || threads == 0 || threads > 1024) fail("a launch has no block, or a block that no GPU takes");
    grid_size = {grid[0], grid[1], grid[2]};
    block_size = {block[0], block[1], block[2]};
    auto body = [&] { call(kernel, params, std::index_sequence_for<Args...>{}); };
    Fibers fibers;
    for (unsigned turn = 0; turn < blocks; turn++) {
        const unsigned at = backwards ? blocks - 1 - turn : turn;
        block_at = {at % grid[0], at / grid[0] % grid[1], at / grid[0] / grid[1]};
        if constexpr (has_barriers) {
            fibers.run(threads, backwards, body);
        } else {
            for (unsigned thread = 0; thread < threads; thread++) {
                place(backwards ? threads - 1 - thread : thread);
                body();
            }
        }
    }
}

/** A kernel by its name. */
struct Entry {
    const char *name;
    void (*run)(const unsigned *grid, const unsigned *block, void **params, bool backwards);
};

inline std::vector<Entry> &entries() {
    static std::vector<Entry> all;
    return all;
}

inline bool enter(const char *name, decltype(Entry::run) run) {
    entries().push_back({name, run});
    return true;
}

}  // namespace cpu

#define threadIdx cpu::thread_at
#define blockIdx cpu::block_at
#define blockDim cpu::block_size
#define gridDim cpu::grid_size

#define ENTRY(kernel, has_barriers)                                                                                    \
    static const bool entered_##kernel = cpu::enter(                                                                   \
        #kernel, [](const unsigned *grid, const unsigned *block, void **params, bool backwards) {                      \
            cpu::launch<has_barriers>(kernel, grid, block, params, backwards);                                         \
        });
#define CPU_ENTRY(kernel) ENTRY(kernel, false)
#define CPU_ENTRY_WITH_BARRIERS(kernel) ENTRY(kernel, true)

static inline void __syncthreads() { cpu::Fibers::wait(); }

static inline unsigned atomicMin(unsigned *at, unsigned value) {
    const unsigned old = *at;
    if (value < old) *at = value;
    return old;
}

static inline unsigned atomicAdd(unsigned *at, unsigned value) {
    const unsigned old = *at;
    *at = old + value;
    return old;
}

#endif
