/* A stand-in for rocprofiler-sdk's roctx with a tracer behind it: ranges and marks are kept with their times, and recording
   can be paused and resumed. ROCPROF_SELECTED_REGIONS: recording begins paused, as under rocprofv3 --selected-regions. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST 100000
static struct { char *name; uint64_t start, end; int tid, seen; } ranges[MOST];
static uint64_t count = 0, stack[64], depth = 0;
static int recording = 1;

__attribute__((constructor)) static void begin(void) { recording = getenv("ROCPROF_SELECTED_REGIONS") == NULL; }

static uint64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_BOOTTIME, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

uint64_t roctxRangeStartA(const char *name) {
    uint64_t id = count < MOST - 1 ? count++ : MOST - 1;
    ranges[id].name = strdup(name);
    ranges[id].start = now();
    ranges[id].end = 0;
    ranges[id].tid = gettid();
    ranges[id].seen = recording;
    return id;
}
void roctxRangeStop(uint64_t id) { if (id < MOST) ranges[id].end = now(); }
int roctxRangePushA(const char *name) { stack[depth % 64] = roctxRangeStartA(name); return (int)depth++; }
int roctxRangePop(void) { if (depth) roctxRangeStop(stack[--depth % 64]); return (int)depth; }
void roctxMarkA(const char *name) { uint64_t id = roctxRangeStartA(name); ranges[id].end = ranges[id].start; }
int roctxProfilerPause(uint64_t thread) { (void)thread; recording = 0; return 0; }
int roctxProfilerResume(uint64_t thread) { (void)thread; recording = 1; return 0; }

/* for the stand-in runtime alone */
int stand_in_recording(void) { return recording; }
int stand_in_dump(const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) return -1;
    for (uint64_t id = 0; id < count; id++)
        if (ranges[id].seen && ranges[id].end)
            fprintf(file, "%llu %llu %d %s\n", (unsigned long long)ranges[id].start, (unsigned long long)ranges[id].end, ranges[id].tid, ranges[id].name);
    return fclose(file);
}
