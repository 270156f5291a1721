/**
 * Chunk decode: the latent → rows in robot units. It unnormalises, makes relative columns absolute, makes rotations orthonormal and clamps.
 * Its verdict names values that are not finite, no rotation, out of range, or too far from the state or the row before.
 *
 * Rows that the chunk continues stand at its begin unchanged. Only the other rows are decoded and judged, the first of them against the
 * last continued one.
 *
 * The reference is native/src/flow/encoder.rs: sums in f64, or each rounded to f32 where a scale says so, and each value rounded to f32 in the
 * end, once more in a rotation. The verdict has the first index of each kind, so that the host refuses a chunk for the same reason as the CPU
 * (native/src/gpu/chunk.rs).
 *
 * A block per chunk: a thread per value, one per row for rotations, barriers between. Some kilobytes are moved: the launch is the cost.
 */
#include "rotation.h"

/** robot = (model + shift) · factor + offset, with the model's value kept between low and high (native/src/gpu/chunk.rs: `Scale`). */
struct Scale {
    double factor, offset, low, high;
    float shift;
    /** 1: each operation is rounded to f32. */
    uint32_t single;
};

/** A column of the rows (native/src/gpu/chunk.rs: `Column`). */
struct Column {
    /** The largest difference of row 0 and the state, and of two rows. Infinite without a limit. */
    double jump_max, step_max;
    float min, max;
    /** The state value that the column is relative to, and the one that row 0 is compared with. Negative: none. */
    int32_t relative_to, jump_from;
};

/** No index: nothing of the kind was found. */
constexpr uint32_t NOWHERE = 0xffffffffu;

/** The verdict on a chunk; an index is `row × columns + column` (native/src/gpu/chunk.rs: `Verdict`). */
struct Verdict {
    /** Values that were clamped. */
    uint32_t clamped;
    uint32_t not_finite;
    /** `row × rotations + index of the rotation`. */
    uint32_t no_rotation;
    uint32_t outside;
    uint32_t jump;
    /** The index in the later row. */
    uint32_t step;
};

/** The facts that all chunks of a launch share (native/src/gpu/chunk.rs: `Plan`). */
struct Plan {
    /** `[scale_rows, columns]`, one row for all or one for each. */
    const Scale *scales;
    /** `[columns]`. */
    const Column *columns;
    /** First column of each rotation, `[rotations]`. */
    const uint32_t *rotations;
    /** Rows of a chunk; values of a latent row; columns; values of a state. */
    uint32_t rows, width, count, state_width;
    uint32_t scale_rows, rotation_count;
    /** Rows that a chunk may continue. */
    uint32_t prefix_rows;
};

static_assert(sizeof(Scale) == 40 && sizeof(Column) == 32 && sizeof(Verdict) == 24 && sizeof(Plan) == 56,
              "as native/src/gpu/chunk.rs has them");

/** Columns of a row, at most (native/src/bundle/manifest.rs). */
constexpr uint32_t COLUMNS_MAX = 64;

/** The result of one operation of f64 in the precision of the scale. */
DEVICE double rounded(const Scale &scale, double value) {
    return scale.single ? static_cast<double>(static_cast<float>(value)) : value;
}

/** A model's value in robot units. */
DEVICE float unnormalised(const Plan &plan, const float *latent, uint32_t row, uint32_t at, const float *state, bool *is_finite) {
    const Column &column = plan.columns[at];
    const Scale &scale = plan.scales[row % plan.scale_rows * plan.count + at];
    const float x = latent[row * plan.width + at];
    const double base = column.relative_to < 0 ? 0.0 : static_cast<double>(state[column.relative_to]);
    double model = static_cast<double>(x);
    if (model < scale.low) model = scale.low;
    if (model > scale.high) model = scale.high;
    const float shifted = static_cast<float>(model + scale.shift);
    const double scaled = rounded(scale, shifted * scale.factor);
    const float value = static_cast<float>(rounded(scale, scaled + scale.offset) + base);
    // The model's value as well: a clip would hide an infinite one.
    *is_finite = finite(x) && finite(value);
    return value;
}

DEVICE float clamped(const Column &column, float value) {
    if (value < column.min) return column.min;
    return value > column.max ? column.max : value;
}

/** NaN counts as too large. */
DEVICE bool beyond(float value, float from, double limit) {
    const double difference = fabs(static_cast<double>(value) - static_cast<double>(from));
    return !(difference <= limit);
}

/** The start values that row 0 is compared with, `[count]`: the state's, with its rotations as directions. */
DEVICE float start_of(const Column &column, const float *state) {
    return column.jump_from < 0 ? 0.0f : state[column.jump_from];
}

DEVICE void start_rotations(const Plan &plan, float *start) {
    for (uint32_t rotation = 0; rotation < plan.rotation_count; rotation++) {
        const uint32_t first = plan.rotations[rotation];
        bool compared = true;
        for (uint32_t at = first; at < first + 6; at++) compared = compared && plan.columns[at].jump_from >= 0;
        if (compared) settle(start + first);
    }
}

/** The rows that a chunk continues, `[rows, columns]` in robot units, and their number. */
struct Prefix {
    const float *values;
    uint32_t rows;
};

/** The prefix of chunk number `chunk`. `prefix_rows` null: chunks continue none. */
DEVICE Prefix prefix_of(const Plan &plan, const float *prefixes, const uint32_t *prefix_rows, uint32_t chunk) {
    if (prefix_rows == nullptr) return {nullptr, 0};
    return {prefixes + static_cast<size_t>(chunk) * plan.prefix_rows * plan.count, prefix_rows[chunk]};
}

/** Blocks of any number of threads. Grid: chunks. */
extern "C" __global__ void chunk_decode(const Plan *shared_plan, const float *latents, const float *states, const float *prefixes,
                                        const uint32_t *prefix_rows, float *chunks, Verdict *verdicts, uint32_t batch) {
    __shared__ Verdict found;
    __shared__ float start[COLUMNS_MAX];
    const Plan plan = *shared_plan;
    const uint32_t chunk = blockIdx.x, values = plan.rows * plan.count;
    if (chunk >= batch) return;
    const float *latent = latents + static_cast<size_t>(chunk) * plan.rows * plan.width;
    const float *state = states + chunk * plan.state_width;
    float *to = chunks + static_cast<size_t>(chunk) * values;
    const Prefix prefix = prefix_of(plan, prefixes, prefix_rows, chunk);
    const uint32_t continued = prefix.rows * plan.count;
    if (threadIdx.x == 0) found = {0, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE};
    __syncthreads();
    for (uint32_t at = threadIdx.x; at < continued; at += blockDim.x) to[at] = prefix.values[at];
    for (uint32_t at = continued + threadIdx.x; at < values; at += blockDim.x) {
        const uint32_t row = at / plan.count, column = at % plan.count;
        bool is_finite = true;
        to[at] = unnormalised(plan, latent, row, column, state, &is_finite);
        if (!is_finite) atomicMin(&found.not_finite, at);
    }
    for (uint32_t at = threadIdx.x; at < plan.count; at += blockDim.x) {
        start[at] = continued > 0 ? prefix.values[continued - plan.count + at] : start_of(plan.columns[at], state);
    }
    __syncthreads();
    for (uint32_t row = prefix.rows + threadIdx.x; row < plan.rows; row += blockDim.x) {
        for (uint32_t index = 0; index < plan.rotation_count; index++) {
            if (!settle(to + row * plan.count + plan.rotations[index])) {
                atomicMin(&found.no_rotation, row * plan.rotation_count + index);
            }
        }
    }
    if (threadIdx.x == blockDim.x - 1 && continued == 0) start_rotations(plan, start);
    __syncthreads();
    for (uint32_t at = continued + threadIdx.x; at < values; at += blockDim.x) {
        const float robot = to[at], value = clamped(plan.columns[at % plan.count], robot);
        to[at] = value;
        if (value == robot) continue;
        atomicAdd(&found.clamped, 1);
        atomicMin(&found.outside, at);
    }
    __syncthreads();
    for (uint32_t at = continued + threadIdx.x; at < values; at += blockDim.x) {
        const Column &column = plan.columns[at % plan.count];
        if (at >= plan.count && beyond(to[at], to[at - plan.count], column.step_max)) atomicMin(&found.step, at);
        const bool is_first = at - continued < plan.count && column.jump_from >= 0;
        if (is_first && beyond(to[at], start[at - continued], column.jump_max)) atomicMin(&found.jump, at);
    }
    __syncthreads();
    if (threadIdx.x == 0) verdicts[chunk] = found;
}
CPU_ENTRY_WITH_BARRIERS(chunk_decode)
