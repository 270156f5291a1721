/**
 * The part of the played driver (driver.h) for the host's side of a replica: contexts of threads, streams, events, and registered host
 * memory. It is stricter than a real driver, so that a real one accepts what it accepts:
 *
 * - Every call here needs a current context on its thread.
 * - Host memory is whole pages, in no other registered range, mapped when it is registered and still when it is unregistered.
 * - An event is reached when its stream or the event itself was waited for. An earlier read of an elapsed time is refused, as by a real
 *   driver.
 *
 * - Nothing is given back once the driver has answered that the device is lost.
 *
 * A forbidden call is counted as a fault and refused with the code of a real driver. Any thread may call.
 */
#pragma once
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>

namespace cpu {

constexpr int INVALID_VALUE = 1, INVALID_CONTEXT = 201, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713, INVALID_HANDLE = 400,
              NOT_READY = 600, LAUNCH_FAILED = 719;
constexpr size_t HOST_PAGE = 4096;

struct Event {
    void *stream;
    uint64_t turn;
    double ms;
    bool is_recorded, is_reached;
};

/** The present counts, and the totals. */
struct Counts {
    uint64_t contexts, streams, events, registered, registered_bytes, registered_ever, faults, contexts_set, records, relaxed, pushes;
    /** Allocations of the device's memory. */
    uint64_t memories;
    /** Waits for a stream; 1 if a thread sleeps meanwhile; ended threads that had entered a context. */
    uint64_t waits, sleeping, entered;
    /** Answers that the device is lost. */
    uint64_t losses;
};

inline std::mutex turn;
inline Counts counts{};
inline uint64_t records = 0;
/** The first address behind each range, and its start. */
inline std::map<uintptr_t, uintptr_t> ranges;
inline std::set<void *> streams;
inline std::set<Event *> events;
inline size_t register_left = SIZE_MAX;
inline bool streams_refused = false;
/** Free bytes of the device. */
inline size_t device_free = size_t(64) << 30, device_used = size_t(16) << 30;
/** The number of the loss; 0: none. */
inline std::atomic<int> lost = 0;
inline int the_context = 0;
inline thread_local void *current = nullptr;

/** A thread, which is counted when it ends. */
struct Thread {
    int mode = 0;
    bool has_entered = false;
    ~Thread() {
        const std::lock_guard<std::mutex> guard(turn);
        counts.relaxed += mode == 2;
        counts.entered += has_entered;
    }
};
inline thread_local Thread thread;

inline thread_local std::vector<void *> below;

inline int wrong(int code) {
    counts.faults++;
    return code;
}

inline bool is_known_lost() { return lost && counts.losses > 0; }

inline bool is_mapped(uintptr_t start, size_t bytes) { return msync(reinterpret_cast<void *>(start), bytes, MS_ASYNC) == 0; }

inline double now_ms() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/** Marks all events of the stream as reached. */
inline void reach(void *stream, uint64_t last) {
    for (Event *event : events) {
        if (event->is_recorded && event->stream == stream && event->turn <= last) event->is_reached = true;
    }
}

}  // namespace cpu

/** Refuses a call without a current context. */
#define CPU_HOST_CALL                                                       \
    const std::lock_guard<std::mutex> guard(cpu::turn);                     \
    if (cpu::current == nullptr) return cpu::wrong(cpu::INVALID_CONTEXT);

/** Refuses a call that gives an object of a lost device back, once the loss could be known. */
#define CPU_RELEASE_CALL \
    CPU_HOST_CALL        \
    if (cpu::is_known_lost()) return cpu::wrong(cpu::LAUNCH_FAILED);

extern "C" {

/** A count by its index in `Counts`. */
uint64_t cpu_count(size_t place) {
    const std::lock_guard<std::mutex> guard(cpu::turn);
    uint64_t all[sizeof(cpu::Counts) / sizeof(uint64_t)];
    memcpy(all, &cpu::counts, sizeof all);
    return all[place];
}

/** Bounds the host memory that can still be registered. */
void cpu_register_left(size_t bytes) { cpu::register_left = bytes; }

/** Sets the free memory of the device. */
void cpu_device_free(size_t bytes) { cpu::device_free = bytes; }

int cuMemGetInfo_v2(size_t *free, size_t *total) {
    CPU_HOST_CALL
    *free = cpu::device_free;
    *total = cpu::device_free + cpu::device_used;
    return cpu::SUCCESS;
}

void cpu_streams_refused(int refused) { cpu::streams_refused = refused != 0; }

/** Loses the device: every later wait for a stream fails with this number. */
void cpu_lose(int code) { cpu::lost = code; }

/** The order of CU_CTX_SCHED_BLOCKING_SYNC, before the context is retained. */
int cuDevicePrimaryCtxSetFlags_v2(int, unsigned flags) {
    const std::lock_guard<std::mutex> guard(cpu::turn);
    cpu::counts.sleeping = flags == 4;
    return cpu::SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **context, int) {
    const std::lock_guard<std::mutex> guard(cpu::turn);
    cpu::counts.contexts++;
    *context = &cpu::the_context;
    return cpu::SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int) {
    const std::lock_guard<std::mutex> guard(cpu::turn);
    if (cpu::is_known_lost() || cpu::counts.contexts == 0) return cpu::wrong(cpu::INVALID_CONTEXT);
    // The last release frees all that is left: an owner of that would use it too late.
    if (--cpu::counts.contexts == 0 && cpu::counts.streams + cpu::counts.events + cpu::counts.registered > 0) cpu::counts.faults++;
    return cpu::SUCCESS;
}

int cuCtxSetCurrent(void *context) {
    const std::lock_guard<std::mutex> guard(cpu::turn);
    cpu::counts.contexts_set++;
    cpu::current = context;
    cpu::thread.has_entered = true;
    return cpu::SUCCESS;
}

int cuCtxPushCurrent_v2(void *context) {
    const std::lock_guard<std::mutex> guard(cpu::turn);
    cpu::counts.pushes++;
    cpu::below.push_back(cpu::current);
    cpu::current = context;
    cpu::thread.has_entered = true;
    return cpu::SUCCESS;
}

int cuCtxPopCurrent_v2(void **context) {
    const std::lock_guard<std::mutex> guard(cpu::turn);
    if (cpu::below.empty()) return cpu::wrong(cpu::INVALID_CONTEXT);
    *context = cpu::current;
    cpu::current = cpu::below.back();
    cpu::below.pop_back();
    return cpu::SUCCESS;
}

int cuThreadExchangeStreamCaptureMode(int *mode) {
    std::swap(cpu::thread.mode, *mode);
    return cpu::SUCCESS;
}

int cuStreamCreate(void **stream, unsigned) {
    CPU_HOST_CALL
    if (cpu::streams_refused) return cpu::OUT_OF_MEMORY;
    *stream = new char;
    cpu::streams.insert(*stream);
    cpu::counts.streams++;
    return cpu::SUCCESS;
}

int cuStreamDestroy_v2(void *stream) {
    CPU_RELEASE_CALL
    if (cpu::streams.erase(stream) == 0) return cpu::wrong(cpu::INVALID_HANDLE);
    for (cpu::Event *event : cpu::events) {
        // Its times would be unreadable.
        if (event->stream == stream) cpu::counts.faults++;
    }
    delete static_cast<char *>(stream);
    cpu::counts.streams--;
    return cpu::SUCCESS;
}

int cuStreamSynchronize(void *stream) {
    CPU_HOST_CALL
    if (cpu::streams.count(stream) == 0) return cpu::wrong(cpu::INVALID_HANDLE);
    cpu::counts.waits++;
    if (cpu::lost) {
        cpu::counts.losses++;
        return cpu::lost;
    }
    cpu::reach(stream, cpu::records);
    return cpu::SUCCESS;
}

int cuEventCreate(void **event, unsigned) {
    CPU_HOST_CALL
    cpu::Event *made = new cpu::Event{};
    cpu::events.insert(made);
    cpu::counts.events++;
    *event = made;
    return cpu::SUCCESS;
}

int cuEventDestroy_v2(void *event) {
    CPU_RELEASE_CALL
    if (cpu::events.erase(static_cast<cpu::Event *>(event)) == 0) return cpu::wrong(cpu::INVALID_HANDLE);
    delete static_cast<cpu::Event *>(event);
    cpu::counts.events--;
    return cpu::SUCCESS;
}

int cuEventRecord(void *event, void *stream) {
    CPU_HOST_CALL
    cpu::Event *known = static_cast<cpu::Event *>(event);
    if (cpu::events.count(known) == 0 || cpu::streams.count(stream) == 0) return cpu::wrong(cpu::INVALID_HANDLE);
    cpu::counts.records++;
    *known = {stream, ++cpu::records, cpu::now_ms(), true, false};
    return cpu::SUCCESS;
}

int cuEventSynchronize(void *event) {
    CPU_HOST_CALL
    cpu::Event *known = static_cast<cpu::Event *>(event);
    if (cpu::events.count(known) == 0 || !known->is_recorded) return cpu::wrong(cpu::INVALID_HANDLE);
    cpu::reach(known->stream, known->turn);
    return cpu::SUCCESS;
}

int cuEventElapsedTime(float *ms, void *begin, void *end) {
    CPU_HOST_CALL
    const cpu::Event *first = static_cast<cpu::Event *>(begin), *last = static_cast<cpu::Event *>(end);
    if (!first->is_recorded || !last->is_recorded) return cpu::wrong(cpu::INVALID_HANDLE);
    if (first->stream != last->stream || first->turn >= last->turn) return cpu::wrong(cpu::INVALID_VALUE);
    if (!first->is_reached || !last->is_reached) return cpu::wrong(cpu::NOT_READY);
    *ms = static_cast<float>(last->ms - first->ms);
    return cpu::SUCCESS;
}

int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned) {
    CPU_HOST_CALL
    const uintptr_t start = reinterpret_cast<uintptr_t>(memory), end = start + bytes;
    if (bytes == 0 || start % cpu::HOST_PAGE != 0 || bytes % cpu::HOST_PAGE != 0) return cpu::wrong(cpu::INVALID_VALUE);
    if (!cpu::is_mapped(start, bytes)) return cpu::wrong(cpu::INVALID_VALUE);
    // Only the first range that ends behind the start can overlap.
    const auto next = cpu::ranges.upper_bound(start);
    if (next != cpu::ranges.end() && next->second < end) return cpu::wrong(cpu::ALREADY_REGISTERED);
    if (bytes > cpu::register_left) return cpu::OUT_OF_MEMORY;
    cpu::register_left -= cpu::register_left == SIZE_MAX ? 0 : bytes;
    cpu::ranges[end] = start;
    cpu::counts.registered++;
    cpu::counts.registered_ever++;
    cpu::counts.registered_bytes += bytes;
    return cpu::SUCCESS;
}

int cuMemHostUnregister(void *memory) {
    CPU_RELEASE_CALL
    const uintptr_t start = reinterpret_cast<uintptr_t>(memory);
    const auto found = cpu::ranges.upper_bound(start);
    if (found == cpu::ranges.end() || found->second != start) return cpu::wrong(cpu::NOT_REGISTERED);
    const size_t bytes = found->first - start;
    // Unmapped memory may have another owner by now.
    if (!cpu::is_mapped(start, bytes)) cpu::counts.faults++;
    cpu::ranges.erase(found);
    cpu::counts.registered--;
    cpu::counts.registered_bytes -= bytes;
    return cpu::SUCCESS;
}

}
