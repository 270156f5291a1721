/*
 * A driver and an nvJPEG without a GPU: libcuda.so.1 and libnvjpeg.so.13 with what bench/peers/nvjpeg.py calls, as nvjpeg.h and cuda.h declare
 * it. Frames are decoded by libjpeg-turbo, and the first value of each is 5 off; there is no JPEG engine.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned char *channel[4];
  size_t pitch[4];
} Image;

int cuInit(unsigned flags) { return flags; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal; }
int cuDeviceGetName(char *name, int length, int device) {
  strncpy(name, "fake", length);
  return device;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = &cuInit;
  return device;
}
int cuCtxSetCurrent(void *context) { return context != (void *)&cuInit; }
int cuStreamCreate(void **stream, unsigned flags) {
  *stream = &cuDeviceGet;
  return flags;
}
int cuStreamSynchronize(void *stream) { return stream != (void *)&cuDeviceGet; }
int cuMemAlloc_v2(void **address, size_t size) { return !(*address = malloc(size)); }
int cuMemFree_v2(void *address) {
  free(address);
  return 0;
}
int cuMemcpyDtoH_v2(void *host, void *device, size_t size) {
  memcpy(host, device, size);
  return 0;
}

static int frames;

int nvjpegGetProperty(int kind, int *value) {
  *value = 13 - kind;
  return 0;
}
int nvjpegCreateEx(int backend, void *device, void *pinned, unsigned flags, void **handle) {
  *handle = &frames;
  return backend == 3 ? 7 : device || pinned || flags;
}
int nvjpegJpegStateCreate(void *handle, void **state) {
  *state = &frames;
  return handle != &frames;
}
int nvjpegDecodeBatchedInitialize(void *handle, void *state, int batch, int threads, int format) {
  frames = batch;
  return handle != &frames || state != &frames || threads < 1 || format != 5;
}
int nvjpegDecodeBatched(void *handle, void *state, const unsigned char *const *data, const size_t *lengths, Image *images, void *stream) {
  void *turbo = dlopen(getenv("TURBOJPEG"), RTLD_NOW);
  void *(*init)(int) = dlsym(turbo, "tj3Init");
  int (*decode)(void *, const unsigned char *, size_t, unsigned char *, int, int) = dlsym(turbo, "tj3Decompress8");
  void (*destroy)(void *) = dlsym(turbo, "tj3Destroy");
  int failed = handle != &frames || state != &frames || stream != (void *)&cuDeviceGet;
  for (int at = 0; at < frames; at++) {
    void *one = init(1);
    failed |= decode(one, data[at], lengths[at], images[at].channel[0], images[at].pitch[0], 0);
    images[at].channel[0][0] += images[at].channel[0][0] > 127 ? -5 : 5;
    destroy(one);
  }
  return failed ? 8 : 0;
}
int nvjpegJpegStateDestroy(void *state) { return state != &frames; }
int nvjpegDestroy(void *handle) { return handle != &frames; }
