/* A stand-in for libcudart and libamdhip64: device memory is a file in /dev/shm, and its handle for
 * other processes is the file's name. VENDOR is cuda or hip. Variables: STAND_IN_DEVICES (1),
 * STAND_IN_FULL (Malloc fails).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define JOIN(a, b) a##b
#define NAMED(vendor, name) JOIN(vendor, name)
#define CALL(name) NAMED(VENDOR, name)
#define MOST 64

static struct { void *place; size_t size; char name[64]; } regions[MOST];
static int made;

int CALL(GetDeviceCount)(int *count) {
    const char *asked = getenv("STAND_IN_DEVICES");
    *count = asked ? atoi(asked) : 1;
    return *count ? 0 : 100;
}

int CALL(SetDevice)(int device) { return device < 0; }

const char *CALL(GetErrorString)(int status) { return status == 2 ? "out of memory" : "failed"; }

int CALL(Malloc)(void **place, size_t size) {
    if (getenv("STAND_IN_FULL") || made == MOST) return 2;
    char path[128];
    snprintf(regions[made].name, 64, "stand_in_device_%d_%d", getpid(), made);
    snprintf(path, sizeof path, "/dev/shm/%s", regions[made].name);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0 || ftruncate(file, size)) return 2;
    *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    regions[made].place = *place;
    regions[made++].size = size;
    return 0;
}

static int at(void *place) {
    for (int i = 0; i < made; i++)
        if (regions[i].place == place) return i;
    return -1;
}

int CALL(Free)(void *place) {
    char path[128];
    int i = at(place);
    if (i < 0) return 1;
    snprintf(path, sizeof path, "/dev/shm/%s", regions[i].name);
    munmap(place, regions[i].size);
    regions[i].place = NULL;
    return unlink(path) ? 1 : 0;
}

int CALL(Memcpy)(void *to, const void *from, size_t size, int kind) {
    int i = at(to);
    if (i < 0 || size > regions[i].size || kind != 1) return 1;
    memcpy(to, from, size);
    return 0;
}

int CALL(IpcGetMemHandle)(void *handle, void *place) {
    int i = at(place);
    if (i < 0) return 1;
    memcpy(handle, regions[i].name, 64);
    return 0;
}
