/**
 * nvJPEG as the CPU plays it: the calls that native/src/cuda/nvjpeg.rs makes, on top of libjpeg-turbo with the settings of the engine, so
 * that the pixels are the same but for what a test asks for. A decode has ended when the call returns. For tests: it shows that the host's
 * code is right, and nothing about the real library, whose pixels differ.
 *
 * It is stricter than the real one: each call but nvjpegGetProperty needs a context on its thread, and a decode a stream that is alive, by
 * what the played driver (driver_host.h) says. What no caller may do is counted as a fault.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <atomic>
#include <vector>

namespace {

constexpr int SUCCESS = 0, NOT_INITIALISED = 1, INVALID_PARAMETER = 2, BAD_JPEG = 3, NOT_SUPPORTED = 4;
/** Strict about the format, colours interpolated: what the engine asks for. */
constexpr unsigned FLAGS = 4 | 32;
constexpr int RGB_INTERLEAVED = 5;

/** What a test sets, and what it reads. */
enum Setting { LEVELS, REFUSED_WIDTH, DECODE_US, LEVELS_EVERY, OTHER_WIDTH, LENIENT, SETTINGS };
enum Count { HANDLES, STATES, DECODED, REFUSED, FAULTS, COUNTS };

std::atomic<uint64_t> settings[SETTINGS];
std::atomic<uint64_t> counts[COUNTS];

/** libjpeg-turbo, and what the driver knows. */
struct Below {
    void *(*init)(int);
    int (*set)(void *, int, int);
    int (*get)(void *, int);
    int (*header)(void *, const uint8_t *, size_t);
    int (*decompress)(void *, const uint8_t *, size_t, uint8_t *, int, int);
    void (*destroy)(void *);
    int (*has_context)();
    int (*has_stream)(void *);
} below;

template <typename Call>
bool find(void *library, const char *name, Call *&call) {
    call = library == nullptr ? nullptr : reinterpret_cast<Call *>(dlsym(library, name));
    return call != nullptr;
}

int fault() {
    counts[FAULTS]++;
    return INVALID_PARAMETER;
}

/** One picture of the file: its edges, and its pixels if there is room for them. */
int picture(const uint8_t *jpeg, size_t length, int edges[2], uint8_t *rgb, size_t pitch) {
    // Values of turbojpeg.h: decompress; width, height, fast upsampling, fast DCT; RGB.
    void *turbo = below.init(1);
    below.set(turbo, 9, 0);
    below.set(turbo, 10, 0);
    bool good = below.header(turbo, jpeg, length) == 0;
    if (good) {
        edges[0] = below.get(turbo, 5);
        edges[1] = below.get(turbo, 6);
        good = rgb == nullptr || settings[LENIENT] != 0 || below.decompress(turbo, jpeg, length, rgb, static_cast<int>(pitch), 0) == 0;
    }
    below.destroy(turbo);
    return good ? SUCCESS : BAD_JPEG;
}

}  // namespace

extern "C" {

/** Before anything else: the libraries that it stands on. 0 is success. */
int played_begin(const char *turbojpeg, const char *driver) {
    void *turbo = dlopen(turbojpeg, RTLD_NOW), *cuda = dlopen(driver, RTLD_NOW);
    const bool found = find(turbo, "tj3Init", below.init) && find(turbo, "tj3Set", below.set) && find(turbo, "tj3Get", below.get) &&
                       find(turbo, "tj3DecompressHeader", below.header) && find(turbo, "tj3Decompress8", below.decompress) &&
                       find(turbo, "tj3Destroy", below.destroy) && find(cuda, "cpu_has_context", below.has_context) &&
                       find(cuda, "cpu_has_stream", below.has_stream);
    return found ? 0 : 1;
}

void played_set(size_t setting, uint64_t value) { settings[setting] = value; }

uint64_t played_count(size_t count) { return counts[count]; }

int nvjpegGetProperty(int kind, int *value) {
    const int version[3] = {13, 0, 4};
    *value = version[kind];
    return SUCCESS;
}

int nvjpegCreateEx(int backend, void *device_allocator, void *host_allocator, unsigned flags, void **handle) {
    if (below.has_stream == nullptr) return NOT_INITIALISED;
    const bool plain = backend == 0 && device_allocator == nullptr && host_allocator == nullptr;
    if (!plain || flags != FLAGS || !below.has_context()) return fault();
    *handle = new char;
    counts[HANDLES]++;
    return SUCCESS;
}

int nvjpegDestroy(void *handle) {
    if (!below.has_context() || counts[HANDLES] == 0) return fault();
    delete static_cast<char *>(handle);
    // The last one takes all that is left with it: whoever owns a state would use it after its end.
    if (--counts[HANDLES] == 0 && counts[STATES] > 0) counts[FAULTS]++;
    return SUCCESS;
}

int nvjpegJpegStateCreate(void *handle, void **state) {
    if (handle == nullptr || !below.has_context()) return fault();
    *state = new std::atomic<int>(0);
    counts[STATES]++;
    return SUCCESS;
}

int nvjpegJpegStateDestroy(void *state) {
    if (!below.has_context() || counts[STATES] == 0) return fault();
    delete static_cast<std::atomic<int> *>(state);
    counts[STATES]--;
    return SUCCESS;
}

int nvjpegGetImageInfo(void *, const uint8_t *jpeg, size_t length, int *channels, int *subsampling, int *widths, int *heights) {
    if (!below.has_context()) return fault();
    int edges[2];
    const int status = picture(jpeg, length, edges, nullptr, 0);
    if (status != SUCCESS) return status;
    const uint64_t width = static_cast<uint64_t>(edges[0]);
    *channels = 3;
    *subsampling = 0;
    widths[0] = edges[0] + (settings[OTHER_WIDTH] == width);
    heights[0] = edges[1];
    return SUCCESS;
}

/** `nvjpegImage_t`. */
struct Image {
    uint8_t *channel[4];
    size_t pitch[4];
};

int nvjpegDecode(void *handle, void *given, const uint8_t *jpeg, size_t length, int format, Image *to, void *stream) {
    if (handle == nullptr || format != RGB_INTERLEAVED || !below.has_context() || !below.has_stream(stream)) return fault();
    std::atomic<int> &users = *static_cast<std::atomic<int> *>(given);
    // A state is for one thread at a time.
    if (users++ != 0) counts[FAULTS]++;
    int edges[2];
    int status = picture(jpeg, length, edges, nullptr, 0);
    if (status == SUCCESS && settings[REFUSED_WIDTH] == static_cast<uint64_t>(edges[0])) status = NOT_SUPPORTED;
    if (status == SUCCESS && to->pitch[0] != static_cast<size_t>(edges[0]) * 3) counts[FAULTS]++;
    if (status == SUCCESS) status = picture(jpeg, length, edges, to->channel[0], to->pitch[0]);
    if (status == SUCCESS) {
        const size_t bytes = to->pitch[0] * static_cast<size_t>(edges[1]);
        const int levels = static_cast<int>(settings[LEVELS]);
        const size_t every = settings[LEVELS_EVERY] == 0 ? 1 : settings[LEVELS_EVERY].load();
        for (size_t at = 0; levels != 0 && at < bytes; at += every) {
            const int value = to->channel[0][at] + levels;
            to->channel[0][at] = static_cast<uint8_t>(value > 255 ? 255 : value);
        }
        usleep(static_cast<useconds_t>(settings[DECODE_US].load()));
    }
    counts[status == SUCCESS ? DECODED : REFUSED]++;
    users--;
    return status;
}

}
