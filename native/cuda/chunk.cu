/**
 * Chunk decode: the latent → rows in robot units. Unnormalised, relative to absolute, rotations made orthonormal, clamped; and a
 * verdict: what is not finite, no rotation, out of range, too far from the state or from the row before.
 *
 * As native/src/chunk.rs: sums in f64, each value rounded to f32 once. The verdict has the first place of each kind, so that the host
 * refuses a chunk for the reason that the CPU would (native/src/cuda/chunk.rs).
 *
 * reference  `decode` below, one loop after the other
 * v1         a thread per chunk, which runs the reference: correct, and as slow as one thread is
 * v2         a block per chunk: a thread per value, a thread per row for rotations, barriers between
 *
 * Bytes moved (native/src/cuda/chunk.rs): latent and state read, rows written and read once more for the steps. Some kilobytes: the
 * launch is what it costs. No version has run on a GPU yet.
 */
#include "number.h"

/** A column of the rows (native/src/cuda/chunk.rs: `Column`). */
struct Column {
    double scale, offset;
    /** The most between row 0 and the state; between two rows. Infinite where the bundle has no limit. */
    double jump_max, step_max;
    float min, max;
    /** State value that the column is relative to; that row 0 is compared with. Negative: none. */
    int32_t relative_to, jump_from;
};

/** No place: nothing of the kind was found. */
constexpr uint32_t NOWHERE = 0xffffffffu;

/** What a chunk is worth; a place is `row × columns + column` (native/src/cuda/chunk.rs: `Verdict`). */
struct Verdict {
    /** Values that were clamped. */
    uint32_t clamped;
    uint32_t not_finite;
    /** `row × rotations + index of the rotation`. */
    uint32_t no_rotation;
    uint32_t outside;
    uint32_t jump;
    /** The place in the later row. */
    uint32_t step;
};

static_assert(sizeof(Column) == 48 && sizeof(Verdict) == 24, "as native/src/cuda/chunk.rs has them");

/** What all chunks of a launch share (native/src/cuda/chunk.rs: `Plan`). */
struct Plan {
    /** `[columns]`. */
    const Column *columns;
    /** `[rotations]`: first columns. */
    const uint32_t *rotations;
    /** Of a chunk; values of a latent row; columns; rotations; values of a state. */
    uint32_t rows, width, count, rotation_count, state_width;
    uint32_t unused;
};

static_assert(sizeof(Plan) == 40, "as native/src/cuda/chunk.rs has it");

/** Columns of a row, at most (native/src/manifest.rs). */
constexpr uint32_t COLUMNS_MAX = 64;

DEVICE bool finite(float value) { return (bits_of(value) & 0x7f800000u) != 0x7f800000u; }

DEVICE double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/** Gram-Schmidt on a rotation6d in place. False when its two columns span no plane; they are left as they are. */
DEVICE bool orthonormalise(float *six) {
    constexpr double LENGTH_MIN = 1e-6, SINE_MIN = 1e-4;
    const double a1[3] = {six[0], six[1], six[2]}, a2[3] = {six[3], six[4], six[5]};
    const double len1 = sqrt(dot(a1, a1)), len2 = sqrt(dot(a2, a2));
    if (len1 < LENGTH_MIN || len2 < LENGTH_MIN) return false;
    const double b1[3] = {a1[0] / len1, a1[1] / len1, a1[2] / len1};
    const double along = dot(b1, a2);
    const double across[3] = {a2[0] - along * b1[0], a2[1] - along * b1[1], a2[2] - along * b1[2]};
    const double height = sqrt(dot(across, across));
    if (height < SINE_MIN * len2) return false;
    for (int axis = 0; axis < 3; axis++) {
        six[axis] = static_cast<float>(b1[axis]);
        six[axis + 3] = static_cast<float>(across[axis] / height);
    }
    return true;
}

/** A model's value in robot units. */
DEVICE float unnormalised(const Column &column, float x, const float *state) {
    const double base = column.relative_to < 0 ? 0.0 : static_cast<double>(state[column.relative_to]);
    return static_cast<float>(static_cast<double>(x) * column.scale + column.offset + base);
}

DEVICE float clamped(const Column &column, float value) {
    if (value < column.min) return column.min;
    return value > column.max ? column.max : value;
}

/** A difference that is no number is one too many. */
DEVICE bool beyond(float value, float from, double limit) {
    const double difference = fabs(static_cast<double>(value) - static_cast<double>(from));
    return !(difference <= limit);
}

/** What row 0 is compared with, `[count]`: the state's values, those of a rotation as directions. */
DEVICE float start_of(const Column &column, const float *state) {
    return column.jump_from < 0 ? 0.0f : state[column.jump_from];
}

DEVICE void start_rotations(const Plan &plan, float *start) {
    for (uint32_t rotation = 0; rotation < plan.rotation_count; rotation++) {
        const uint32_t first = plan.rotations[rotation];
        bool compared = true;
        for (uint32_t at = first; at < first + 6; at++) compared = compared && plan.columns[at].jump_from >= 0;
        if (compared) orthonormalise(start + first);
    }
}

DEVICE void note(uint32_t *place, uint32_t at) {
    if (at < *place) *place = at;
}

/** The reference: one chunk, one loop after the other. */
template <typename X>
DEVICE void decode(const Plan &plan, const X *latent, const float *state, float *values, Verdict *verdict) {
    Verdict found = {0, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE};
    for (uint32_t row = 0; row < plan.rows; row++) {
        float *to = values + row * plan.count;
        for (uint32_t at = 0; at < plan.count; at++) {
            to[at] = unnormalised(plan.columns[at], load(latent[row * plan.width + at]), state);
            if (!finite(to[at])) note(&found.not_finite, row * plan.count + at);
        }
        for (uint32_t rotation = 0; rotation < plan.rotation_count; rotation++) {
            if (!orthonormalise(to + plan.rotations[rotation])) note(&found.no_rotation, row * plan.rotation_count + rotation);
        }
        for (uint32_t at = 0; at < plan.count; at++) {
            const float robot = to[at];
            to[at] = clamped(plan.columns[at], robot);
            if (to[at] == robot) continue;
            found.clamped++;
            note(&found.outside, row * plan.count + at);
        }
    }
    float start[COLUMNS_MAX];
    for (uint32_t at = 0; at < plan.count; at++) start[at] = start_of(plan.columns[at], state);
    start_rotations(plan, start);
    for (uint32_t at = 0; at < plan.count; at++) {
        const Column &column = plan.columns[at];
        if (column.jump_from >= 0 && beyond(values[at], start[at], column.jump_max)) note(&found.jump, at);
    }
    for (uint32_t at = plan.count; at < plan.rows * plan.count; at++) {
        if (beyond(values[at], values[at - plan.count], plan.columns[at % plan.count].step_max)) note(&found.step, at);
    }
    *verdict = found;
}

/** A thread per chunk. Grid: chunks. */
template <typename X>
DEVICE void chunk_v1(const Plan *plan, const X *latents, const float *states, float *chunks, Verdict *verdicts, uint32_t batch) {
    const uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= batch) return;
    decode(*plan, latents + static_cast<size_t>(at) * plan->rows * plan->width, states + at * plan->state_width,
           chunks + static_cast<size_t>(at) * plan->rows * plan->count, verdicts + at);
}

/** A block per chunk, of any number of threads. Grid: chunks. */
template <typename X>
DEVICE void chunk_v2(const Plan *shared_plan, const X *latents, const float *states, float *chunks, Verdict *verdicts,
                     uint32_t batch) {
    __shared__ Verdict found;
    __shared__ float start[COLUMNS_MAX];
    const Plan plan = *shared_plan;
    const uint32_t chunk = blockIdx.x, values = plan.rows * plan.count;
    if (chunk >= batch) return;
    const X *latent = latents + static_cast<size_t>(chunk) * plan.rows * plan.width;
    const float *state = states + chunk * plan.state_width;
    float *to = chunks + static_cast<size_t>(chunk) * values;
    if (threadIdx.x == 0) found = {0, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE};
    __syncthreads();
    for (uint32_t at = threadIdx.x; at < values; at += blockDim.x) {
        const uint32_t row = at / plan.count, column = at % plan.count;
        const float value = unnormalised(plan.columns[column], load(latent[row * plan.width + column]), state);
        to[at] = value;
        if (!finite(value)) atomicMin(&found.not_finite, at);
    }
    for (uint32_t at = threadIdx.x; at < plan.count; at += blockDim.x) start[at] = start_of(plan.columns[at], state);
    __syncthreads();
    for (uint32_t row = threadIdx.x; row < plan.rows; row += blockDim.x) {
        for (uint32_t rotation = 0; rotation < plan.rotation_count; rotation++) {
            if (!orthonormalise(to + row * plan.count + plan.rotations[rotation])) {
                atomicMin(&found.no_rotation, row * plan.rotation_count + rotation);
            }
        }
    }
    if (threadIdx.x == blockDim.x - 1) start_rotations(plan, start);
    __syncthreads();
    for (uint32_t at = threadIdx.x; at < values; at += blockDim.x) {
        const float robot = to[at], value = clamped(plan.columns[at % plan.count], robot);
        to[at] = value;
        if (value == robot) continue;
        atomicAdd(&found.clamped, 1);
        atomicMin(&found.outside, at);
    }
    __syncthreads();
    for (uint32_t at = threadIdx.x; at < values; at += blockDim.x) {
        const Column &column = plan.columns[at % plan.count];
        if (at >= plan.count) {
            if (beyond(to[at], to[at - plan.count], column.step_max)) atomicMin(&found.step, at);
        } else if (column.jump_from >= 0 && beyond(to[at], start[at], column.jump_max)) {
            atomicMin(&found.jump, at);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) verdicts[chunk] = found;
}

#define CHUNK_KERNEL(version, name, X)                                                                                 \
    extern "C" __global__ void chunk_##version##_##name(const Plan *plan, const X *latents, const float *states,       \
                                                        float *chunks, Verdict *verdicts, uint32_t batch) {            \
        chunk_##version(plan, latents, states, chunks, verdicts, batch);                                               \
    }
#define CHUNK_KERNELS(name, X)                                                                                         \
    CHUNK_KERNEL(v1, name, X)                                                                                          \
    CHUNK_KERNEL(v2, name, X)                                                                                          \
    CPU_ENTRY(chunk_v1_##name)                                                                                         \
    CPU_ENTRY_WITH_BARRIERS(chunk_v2_##name)
FOR_EACH_NUMBER(CHUNK_KERNELS)

#ifndef __CUDACC__

/** The reference, in f32. */
extern "C" void chunk_reference(const Plan *plan, const float *latent, const float *state, float *values, Verdict *verdict) {
    decode(*plan, latent, state, values, verdict);
}

#endif
