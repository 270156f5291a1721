/**
 * Frame to tensor: RGB bytes → resized (antialiased, equal to Pillow's to the bit), normalised, in the model's layout and type; or in u8
 * the resized bytes themselves, for graphs that normalise by themselves.
 *
 * The filter is native/src/resize.rs: a triangle, horizontal then vertical, weights of 22 fractional bits, rounded to 8 bits between
 * the two. All of it is integer arithmetic; the host computes weights and normalised values once per size, in doubles.
 * Pad, stretch and crop differ in the two axes alone: where the picture lies in the target, and which part of it.
 *
 * reference  plain loops over the whole picture
 * v1         a thread per pixel of the target; it repeats the horizontal sums of all its rows. No scratch, one launch
 * v2         two launches: the horizontal pass to scratch, then a thread per pixel. Each sum once, the scratch written and read
 * v3         a block per tile: the horizontal sums of the tile's rows go to shared memory, a group of rows at a time. One launch
 *
 * Bytes moved, at least (native/src/cuda/frame.rs): the part of each picture that the target shows once, the weights once, the tensor
 * once. The engine launches v3 where nvJPEG decodes frames (native/src/frame/device.rs), else it resizes them on the CPU
 * (native/src/resize.rs). No version has run on a GPU yet.
 */
#include "number.h"

/** One axis of a resize (native/src/cuda/frame.rs: `Axis`). */
struct Axis {
    /** Per pixel of the picture: its first source pixel, and how many. `[count]`. */
    const uint32_t *first, *taps;
    /** `[count, stride]`. */
    const int32_t *weights;
    uint32_t stride;
    /** Pixels of the picture, and where in the target it begins. */
    uint32_t count, offset;
    uint32_t unused;
};

/** One picture and its way into the target (native/src/cuda/frame.rs: `Frame`). */
struct Frame {
    /** `[height, width, 3]`. */
    const uint8_t *rgb;
    /** v2: `[rows, across.count, 3]`, the rows from the first to the last that the target needs; else null. */
    uint8_t *scratch;
    Axis across, down;
    uint32_t width, height;
};

static_assert(sizeof(Axis) == 40 && sizeof(Frame) == 104, "as native/src/cuda/frame.rs has them");

constexpr int WEIGHT_BITS = 22;
constexpr int32_t ONE_HALF = 1 << (WEIGHT_BITS - 1);

/** Layouts: `[3, height, width]` and `[height, width, 3]`. */
constexpr uint32_t CHW = 0, HWC = 1;

DEVICE uint8_t byte_of(int32_t sum) {
    const int32_t value = sum >> WEIGHT_BITS;
    return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

/** The horizontal pass at one pixel of a source row. */
DEVICE void across_at(const Frame &frame, uint32_t row, uint32_t column, uint8_t pixel[3]) {
    const Axis &axis = frame.across;
    const uint8_t *from = frame.rgb + (static_cast<size_t>(row) * frame.width + axis.first[column]) * 3;
    const int32_t *weights = axis.weights + static_cast<size_t>(column) * axis.stride;
    int32_t sums[3] = {ONE_HALF, ONE_HALF, ONE_HALF};
    for (uint32_t tap = 0; tap < axis.taps[column]; tap++) {
        for (int channel = 0; channel < 3; channel++) sums[channel] += from[tap * 3 + channel] * weights[tap];
    }
    for (int channel = 0; channel < 3; channel++) pixel[channel] = byte_of(sums[channel]);
}

/** Source rows that the target needs: from the first one of its first row to the last one of its last. */
DEVICE uint32_t rows_from(const Axis &down, uint32_t row) { return down.first[row]; }
DEVICE uint32_t rows_to(const Axis &down, uint32_t row) { return down.first[row] + down.taps[row]; }

/** One value of the tensor, `normal` being `[3, 256]`. */
template <typename T>
DEVICE void keep(T *to, const float *normal, int channel, uint8_t value) {
    store(to, normal[channel * 256 + value]);
}

/** In u8 it is the pixel's own, and there need not be a table. */
DEVICE void keep(uint8_t *to, const float *, int, uint8_t value) { *to = value; }

/** Writes one pixel of the tensor. */
template <typename T>
DEVICE void put(T *tensor, const float *normal, uint32_t layout, uint32_t width, uint32_t height, uint32_t x, uint32_t y,
                const uint8_t pixel[3]) {
    const size_t plane = static_cast<size_t>(width) * height, at = static_cast<size_t>(y) * width + x;
    tensor += blockIdx.z * plane * 3;
    for (int channel = 0; channel < 3; channel++) {
        const size_t to = layout == CHW ? channel * plane + at : at * 3 + channel;
        keep(tensor + to, normal, channel, pixel[channel]);
    }
}

/** A thread per pixel of the target. Grid: over width, over height, frames. */
template <typename T>
DEVICE void frame_v1(const Frame *frames, const float *normal, T *tensor, uint32_t width, uint32_t height, uint32_t layout) {
    const uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const Frame &frame = frames[blockIdx.z];
    // Left of and above the picture these are huge.
    const uint32_t column = x - frame.across.offset, row = y - frame.down.offset;
    uint8_t pixel[3] = {0, 0, 0};
    if (column < frame.across.count && row < frame.down.count) {
        const int32_t *weights = frame.down.weights + static_cast<size_t>(row) * frame.down.stride;
        int32_t sums[3] = {ONE_HALF, ONE_HALF, ONE_HALF};
        for (uint32_t tap = 0; tap < frame.down.taps[row]; tap++) {
            across_at(frame, frame.down.first[row] + tap, column, pixel);
            for (int channel = 0; channel < 3; channel++) sums[channel] += pixel[channel] * weights[tap];
        }
        for (int channel = 0; channel < 3; channel++) pixel[channel] = byte_of(sums[channel]);
    }
    put(tensor, normal, layout, width, height, x, y, pixel);
}

/** The horizontal pass to scratch. Grid: over the widest picture, over the most source rows, frames. */
extern "C" __global__ void frame_v2_across(const Frame *frames) {
    const Frame &frame = frames[blockIdx.z];
    const uint32_t from = rows_from(frame.down, 0), to = rows_to(frame.down, frame.down.count - 1);
    const uint32_t column = blockIdx.x * blockDim.x + threadIdx.x, row = from + blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= frame.across.count || row >= to) return;
    across_at(frame, row, column, frame.scratch + (static_cast<size_t>(row - from) * frame.across.count + column) * 3);
}
CPU_ENTRY(frame_v2_across)

/** A thread per pixel of the target, on what `frame_v2_across` has written. */
template <typename T>
DEVICE void frame_v2(const Frame *frames, const float *normal, T *tensor, uint32_t width, uint32_t height, uint32_t layout) {
    const uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const Frame &frame = frames[blockIdx.z];
    const uint32_t column = x - frame.across.offset, row = y - frame.down.offset;
    uint8_t pixel[3] = {0, 0, 0};
    if (column < frame.across.count && row < frame.down.count) {
        const uint32_t first = frame.down.first[row] - rows_from(frame.down, 0), pitch = frame.across.count * 3;
        const uint8_t *from = frame.scratch + static_cast<size_t>(first) * pitch + column * 3;
        const int32_t *weights = frame.down.weights + static_cast<size_t>(row) * frame.down.stride;
        int32_t sums[3] = {ONE_HALF, ONE_HALF, ONE_HALF};
        for (uint32_t tap = 0; tap < frame.down.taps[row]; tap++, from += pitch) {
            for (int channel = 0; channel < 3; channel++) sums[channel] += from[channel] * weights[tap];
        }
        for (int channel = 0; channel < 3; channel++) pixel[channel] = byte_of(sums[channel]);
    }
    put(tensor, normal, layout, width, height, x, y, pixel);
}

/** A tile of v3, which is its block: pixels across and down. */
constexpr uint32_t TILE_WIDTH = 32, TILE_HEIGHT = 8;
/** Source rows whose horizontal sums are in shared memory at once. */
constexpr uint32_t GROUP_ROWS = 48;

/** A block per tile, of TILE_WIDTH × TILE_HEIGHT threads. Grid: tiles across, tiles down, frames. */
template <typename T>
DEVICE void frame_v3(const Frame *frames, const float *normal, T *tensor, uint32_t width, uint32_t height, uint32_t layout) {
    __shared__ uint8_t group[GROUP_ROWS][TILE_WIDTH][3];
    const Frame &frame = frames[blockIdx.z];
    const Axis &across = frame.across, &down = frame.down;
    const uint32_t x = blockIdx.x * TILE_WIDTH + threadIdx.x, y = blockIdx.y * TILE_HEIGHT + threadIdx.y;
    const uint32_t column = x - across.offset, row = y - down.offset;
    const bool shows = column < across.count && row < down.count;
    // The tile's rows of the picture: those of its first and last line, kept inside the picture. The same for the whole block.
    const uint32_t top = blockIdx.y * TILE_HEIGHT, bottom = top + TILE_HEIGHT, left = blockIdx.x * TILE_WIDTH;
    const uint32_t end = down.offset + down.count;
    const bool empty = bottom <= down.offset || top >= end || left + TILE_WIDTH <= across.offset ||
                       left >= across.offset + across.count;
    uint8_t pixel[3] = {0, 0, 0};
    if (!empty) {
        const uint32_t first_row = top > down.offset ? top - down.offset : 0;
        const uint32_t last_row = (bottom < end ? bottom : end) - down.offset - 1;
        const uint32_t from = rows_from(down, first_row), to = rows_to(down, last_row);
        const uint32_t mine_from = shows ? down.first[row] : 0, mine_to = shows ? mine_from + down.taps[row] : 0;
        const int32_t *weights = shows ? down.weights + static_cast<size_t>(row) * down.stride : nullptr;
        int32_t sums[3] = {ONE_HALF, ONE_HALF, ONE_HALF};
        for (uint32_t start = from; start < to; start += GROUP_ROWS) {
            const uint32_t stop = start + GROUP_ROWS < to ? start + GROUP_ROWS : to;
            if (column < across.count) {
                for (uint32_t line = start + threadIdx.y; line < stop; line += TILE_HEIGHT) {
                    across_at(frame, line, column, group[line - start][threadIdx.x]);
                }
            }
            __syncthreads();
            const uint32_t begin = mine_from > start ? mine_from : start, until = mine_to < stop ? mine_to : stop;
            for (uint32_t line = begin; line < until; line++) {
                const int32_t weight = weights[line - mine_from];
                for (int channel = 0; channel < 3; channel++) {
                    sums[channel] += group[line - start][threadIdx.x][channel] * weight;
                }
            }
            __syncthreads();
        }
        if (shows) {
            for (int channel = 0; channel < 3; channel++) pixel[channel] = byte_of(sums[channel]);
        }
    }
    if (x < width && y < height) put(tensor, normal, layout, width, height, x, y, pixel);
}

#define FRAME_KERNEL(version, name, T)                                                                                 \
    extern "C" __global__ void frame_##version##_##name(const Frame *frames, const float *normal, T *tensor,           \
                                                        uint32_t width, uint32_t height, uint32_t layout) {            \
        frame_##version(frames, normal, tensor, width, height, layout);                                                \
    }
#define FRAME_KERNELS(name, T)                                                                                         \
    FRAME_KERNEL(v1, name, T)                                                                                          \
    FRAME_KERNEL(v2, name, T)                                                                                          \
    FRAME_KERNEL(v3, name, T)                                                                                          \
    CPU_ENTRY(frame_v1_##name)                                                                                         \
    CPU_ENTRY(frame_v2_##name)                                                                                         \
    CPU_ENTRY_WITH_BARRIERS(frame_v3_##name)
FOR_EACH_NUMBER(FRAME_KERNELS)
FRAME_KERNELS(u8, uint8_t)

#ifndef __CUDACC__

namespace {

/** The weights of one target pixel, as Pillow has them. `whole` = pixels of the whole resized edge. */
struct Taps {
    int first;
    std::vector<int32_t> weights;

    Taps(int source, int whole, int target) {
        const double scale = static_cast<double>(source) / whole, wide = scale > 1 ? scale : 1;
        const double centre = (target + 0.5) * scale, inverse = 1.0 / wide;
        first = static_cast<int>(centre - wide + 0.5);
        if (first < 0) first = 0;
        int last = static_cast<int>(centre + wide + 0.5);
        if (last > source) last = source;
        std::vector<double> shares;
        double sum = 0;
        for (int at = first; at < last; at++) {
            const double share = 1.0 - fabs((at - centre + 0.5) * inverse);
            shares.push_back(share > 0 ? share : 0);
            sum += shares.back();
        }
        for (double share : shares) weights.push_back(static_cast<int32_t>(share / sum * (1 << WEIGHT_BITS) + 0.5));
    }
};

}  // namespace

/**
 * The reference, for one frame in f32 and CHW. `whole`: edges of the whole resized picture; `cut`: where the shown part begins in it;
 * `place`, `shown`: where that lies in the target, and its edges. Pairs are width, height.
 */
extern "C" void frame_reference(const uint8_t *rgb, const uint32_t source[2], const uint32_t whole[2], const uint32_t cut[2],
                                const uint32_t place[2], const uint32_t shown[2], const uint32_t target[2],
                                const float *normal, float *tensor) {
    const uint32_t plane = target[0] * target[1];
    for (uint32_t at = 0; at < plane * 3; at++) tensor[at] = normal[at / plane * 256];
    std::vector<uint8_t> rows(static_cast<size_t>(shown[0]) * source[1] * 3);
    for (uint32_t x = 0; x < shown[0]; x++) {
        const Taps taps(source[0], whole[0], cut[0] + x);
        for (uint32_t y = 0; y < source[1]; y++) {
            for (uint32_t channel = 0; channel < 3; channel++) {
                int32_t sum = ONE_HALF;
                for (size_t tap = 0; tap < taps.weights.size(); tap++) {
                    sum += rgb[(static_cast<size_t>(y) * source[0] + taps.first + tap) * 3 + channel] * taps.weights[tap];
                }
                rows[(static_cast<size_t>(y) * shown[0] + x) * 3 + channel] = byte_of(sum);
            }
        }
    }
    for (uint32_t y = 0; y < shown[1]; y++) {
        const Taps taps(source[1], whole[1], cut[1] + y);
        for (uint32_t x = 0; x < shown[0]; x++) {
            for (uint32_t channel = 0; channel < 3; channel++) {
                int32_t sum = ONE_HALF;
                for (size_t tap = 0; tap < taps.weights.size(); tap++) {
                    sum += rows[((taps.first + tap) * shown[0] + x) * 3 + channel] * taps.weights[tap];
                }
                const uint32_t to = channel * plane + (place[1] + y) * target[0] + place[0] + x;
                tensor[to] = normal[channel * 256 + byte_of(sum)];
            }
        }
    }
}

#endif
