/* A stand-in for a disk that takes no more: preloaded, it answers writes below a folder with an error.

   DISK_BELOW names the folder, DISK_ERRNO the error. It takes everything until the file DISK_SWITCH
   is there. What is refused: write and pwrite to files below it, and making, renaming or opening
   files for writing there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refused(const char *path) {
    const char *below = getenv("DISK_BELOW"), *why = getenv("DISK_ERRNO"), *at = getenv("DISK_SWITCH");
    if (!path || !below || !why || !at || strncmp(path, below, strlen(below))) return 0;
    if (syscall(SYS_faccessat, AT_FDCWD, at, F_OK)) return 0;
    return atoi(why);
}

static int refused_handle(int handle) {
    char name[64], path[PATH_MAX];
    snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return refused(path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define REFUSE(why) do { int refusal = (why); if (refusal) { errno = refusal; return -1; } } while (0)

ssize_t write(int handle, const void *data, size_t size) {
    int before = errno;
    REFUSE(refused_handle(handle));
    errno = before;
    return NEXT(write)(handle, data, size);
}

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t at) {
    REFUSE(refused_handle(handle));
    return NEXT(pwrite64)(handle, data, size, at);
}

#define OPENS(name)                                                             \
    int name(const char *path, int flags, ...) {                               \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        mode_t mode = va_arg(rest, mode_t);                                     \
        va_end(rest);                                                           \
        if (flags & (O_WRONLY | O_RDWR | O_CREAT)) REFUSE(refused(path));       \
        return NEXT(name)(path, flags, mode);                                   \
    }
OPENS(open)
OPENS(open64)

int rename(const char *from, const char *to) {
    REFUSE(refused(to));
    return NEXT(rename)(from, to);
}

int mkdir(const char *path, mode_t mode) {
    REFUSE(refused(path));
    return NEXT(mkdir)(path, mode);
}
