/**
 * Flow update, one Euler step of a latent: x ← x + dt · v, where v = v_u + guide · (v_c − v_u) with guidance, else v_c.
 *
 * As native/src/euler.rs: in f32, each operation rounded by itself. dt = (time of the next step) − (time of this one), so its sign is
 * the direction of the flow. A velocity with guidance is `[2, count]`, first the branch with the instruction.
 * The first values of a row of the batch may be held: those of rows that a chunk continues stay as they are (flow/own.rs).
 *
 * reference  one loop
 * v1         a thread per value
 * v2         a thread per four values, loaded and stored at once; wants addresses and branches at multiples of four values
 *
 * Bytes moved (native/src/cuda/flow.rs): the latent read and written, the velocity read. A chunk is some thousand values: the launch is
 * what a step costs. No version has run on a GPU yet.
 */
#include "number.h"

/** Where guidance is: `guided` 1. */
DEVICE float velocity_of(float conditional, float unconditional, float guide, uint32_t guided) {
    return guided != 0 ? unconditional + guide * (conditional - unconditional) : conditional;
}

/** How many values of a latent belong to one row of the batch, and how many of them each row holds; null: none does. */
struct Held {
    const uint32_t *values;
    uint64_t row;
};

DEVICE bool holds(const Held &held, uint64_t at) { return held.values != nullptr && at % held.row < held.values[at / held.row]; }

/** A thread per value. `branch`: values from one branch to the other. */
template <typename X, typename V>
DEVICE void flow_v1(X *latent, const V *velocity, uint64_t count, uint64_t branch, float dt, float guide, uint32_t guided,
                    Held held) {
    const uint64_t at = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= count || holds(held, at)) return;
    const float v = velocity_of(load(velocity[at]), guided != 0 ? load(velocity[branch + at]) : 0.0f, guide, guided);
    store(latent + at, load(latent[at]) + dt * v);
}

template <typename T>
struct alignas(4 * sizeof(T)) Four {
    T values[4];
};

/** A thread per four values; the last one takes what is left. */
template <typename X, typename V>
DEVICE void flow_v2(X *latent, const V *velocity, uint64_t count, uint64_t branch, float dt, float guide, uint32_t guided,
                    Held held) {
    const uint64_t at = (static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 4;
    if (at >= count) return;
    if (at + 4 > count) {
        for (uint64_t one = at; one < count; one++) {
            if (holds(held, one)) continue;
            const float u = guided != 0 ? load(velocity[branch + one]) : 0.0f;
            store(latent + one, load(latent[one]) + dt * velocity_of(load(velocity[one]), u, guide, guided));
        }
        return;
    }
    Four<X> x = *reinterpret_cast<const Four<X> *>(latent + at);
    const Four<V> c = *reinterpret_cast<const Four<V> *>(velocity + at);
    const Four<V> u = guided != 0 ? *reinterpret_cast<const Four<V> *>(velocity + branch + at) : c;
    for (int one = 0; one < 4; one++) {
        if (holds(held, at + one)) continue;
        const float v = velocity_of(load(c.values[one]), load(u.values[one]), guide, guided);
        store(x.values + one, load(x.values[one]) + dt * v);
    }
    *reinterpret_cast<Four<X> *>(latent + at) = x;
}

#define FLOW_KERNEL(version, x, X, v, V)                                                                               \
    extern "C" __global__ void flow_##version##_##x##_##v(X *latent, const V *velocity, uint64_t count,                \
                                                          uint64_t branch, float dt, float guide, uint32_t guided,     \
                                                          const uint32_t *held, uint64_t row) {                        \
        flow_##version(latent, velocity, count, branch, dt, guide, guided, Held{held, row});                           \
    }                                                                                                                  \
    CPU_ENTRY(flow_##version##_##x##_##v)
#define FLOW_KERNELS(x, X, v, V)                                                                                       \
    FLOW_KERNEL(v1, x, X, v, V)                                                                                        \
    FLOW_KERNEL(v2, x, X, v, V)
// The latent as wide as the velocity, or wider: what is added up over the steps is kept in f32 where the graph takes it.
FLOW_KERNELS(f32, float, f32, float)
FLOW_KERNELS(f16, F16, f16, F16)
FLOW_KERNELS(bf16, Bf16, bf16, Bf16)
FLOW_KERNELS(f32, float, f16, F16)
FLOW_KERNELS(f32, float, bf16, Bf16)

#ifndef __CUDACC__

/** The reference, in f32. */
extern "C" void flow_reference(float *latent, const float *velocity, uint64_t count, uint64_t branch, float dt, float guide,
                               uint32_t guided, const uint32_t *held, uint64_t row) {
    for (uint64_t at = 0; at < count; at++) {
        if (held != nullptr && at % row < held[at / row]) continue;
        const float c = velocity[at];
        const float v = guided != 0 ? velocity[branch + at] + guide * (c - velocity[branch + at]) : c;
        latent[at] += dt * v;
    }
}

#endif
