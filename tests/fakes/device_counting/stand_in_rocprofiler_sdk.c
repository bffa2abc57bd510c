/* A stand-in for AMD's librocprofiler-sdk: the device counting service of one generation, without a
 * device. It insists on the order of calls, answers with the library's status numbers, and its
 * counters move with CLOCK_MONOTONIC by a load that the environment tells. Our own declarations; the
 * layouts are those that the released headers have.
 *
 * Compiled with -DMAJOR -DMINOR, and -DIDS=1 for the record ids of 1.3. Together with it goes
 * stand_in_hsa.c, which finds it among the global symbols as rocprofiler-register would.
 *
 *   STAND_IN_GPUS     gpu_id:simd_count:simd_per_cu:waves_per_simd:xccs:target, blank-separated
 *   STAND_IN_SHARES   NAME=VALUE: of CYCLES per second for GRBM_GUI_ACTIVE, of their sum over all
 *                     instances for the others, in events per cycle of the whole device
 *   STAND_IN_HZ       cycles per second (default 2e9)
 *   STAND_IN_MODE     words: eperm ebusy einval abort-start hang-sample fail-sample hidden=GPU_ID
 *                     no-register missing=NAME invalid=NAME sq-room=N saturate larger-agent
 *   STAND_IN_TRACE    a file to which each call is appended
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, ERROR = 1, CONTEXT_NOT_FOUND = 2, AGENT_NOT_FOUND = 7, COUNTER_NOT_FOUND = 8,
       BUSY = 9, NOT_STARTED = 11, CONFLICT = 12, NOT_ZERO = 13, LOCKED = 16, ABI = 18,
       INVALID = 19, NOT_VALID = 20, FINALISED = 21, NO_HSA = 22, RESOURCES = 29, LIMIT = 38 };
#define VERSION_AT_LEAST(a, b) (MAJOR > (a) || (MAJOR == (a) && MINOR >= (b)))
#if VERSION_AT_LEAST(1, 1)
#define AGENT_BYTES 312
#elif VERSION_AT_LEAST(0, 6)
#define AGENT_BYTES 304
#else
#define AGENT_BYTES 296
#endif
#define GPUS 8

typedef struct { uint64_t gpu_id; int simds, per_cu, waves, xccs, target; } gpu_t;
typedef struct { uint64_t id; double value; uint64_t dispatch, user, agent; } record_t;
typedef struct { const char *name, *block; } counter_t;
typedef struct { size_t size; int (*initialize)(void *, void *); void (*finalize)(void *); void *data; } result_t;
typedef int (*set_config_t)(uint64_t, uint64_t);
typedef void (*service_t)(uint64_t, uint64_t, set_config_t, void *);
typedef struct { uint64_t agent, config; service_t service; void *data; double start; int runs, samples; } context_t;
typedef struct { uint64_t agent; int count, counters[32]; } config_t;

static const counter_t COUNTERS[] = {
    {"GRBM_COUNT", "GRBM"}, {"GRBM_GUI_ACTIVE", "GRBM"}, {"SQ_WAVES", "SQ"},
    {"SQ_BUSY_CU_CYCLES", "SQ"}, {"SQ_WAVE_CYCLES", "SQ"}, {"SQ_VALU_MFMA_BUSY_CYCLES", "SQ"},
    {"SQ_ACTIVE_INST_VALU", "SQ"}, {"SQ_ACTIVE_INST_VMEM", "SQ"}, {"SQ_ACTIVE_INST_FLAT", "SQ"},
    {"SQ_ACTIVE_INST_LDS", "SQ"}, {"SQ_ACTIVE_INST_SCA", "SQ"}, {"TCC_EA_RDREQ", "TCC"},
    {"TCC_EA_RDREQ_32B", "TCC"}, {"TCC_EA_WRREQ", "TCC"}, {"TCC_EA_WRREQ_64B", "TCC"},
    {"TCC_EA0_RDREQ", "TCC"}, {"TCC_EA0_RDREQ_32B", "TCC"}, {"TCC_BUBBLE", "TCC"},
    {"TCC_EA0_WRREQ", "TCC"}, {"TCC_EA0_RDREQ_128B", "TCC"}, {"TCC_HIT", "TCC"}};
#define NCOUNTERS ((int)(sizeof COUNTERS / sizeof *COUNTERS))
#define FIRST_COUNTER 100 /* ids are no positions */

static gpu_t gpus[GPUS];
static int gpu_count, phase, hsa_up; /* phase: 0 before, 1 in initialize, 2 configured, 3 finalised */
static context_t contexts[GPUS * 2];
static int context_count;
static config_t configs[256];
static int config_count;
static result_t *result;
static char agents[GPUS + 1][AGENT_BYTES];

static void note(const char *what) {
    const char *path = getenv("STAND_IN_TRACE");
    if (!path) return;
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0) return;
    dprintf(file, "%s\n", what);
    close(file);
}

static const char *mode(const char *word) { /* what stands behind the word, NULL without it */
    static char found[64];
    const char *text = getenv("STAND_IN_MODE");
    size_t length = strlen(word);
    while (text && *text) {
        size_t whole = strcspn(text, " ");
        if (whole >= length && !strncmp(text, word, length) && (whole == length || text[length] == '=')) {
            size_t rest = whole > length ? whole - length - 1 : 0;
            if (rest > sizeof found - 1) rest = sizeof found - 1;
            memcpy(found, text + whole - rest, rest);
            found[rest] = 0;
            return found;
        }
        text += whole;
        text += strspn(text, " ");
    }
    return NULL;
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

#if VERSION_AT_LEAST(0, 6)
static double share_of(const char *name) {
    const char *text = getenv("STAND_IN_SHARES");
    size_t length = strlen(name);
    while (text && *text) {
        if (!strncmp(text, name, length) && text[length] == '=') return atof(text + length + 1);
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
    return 0;
}

#endif

static void read_gpus(void) {
    const char *text = getenv("STAND_IN_GPUS");
    int used;
    while (text && *text && gpu_count < GPUS) {
        gpu_t *gpu = &gpus[gpu_count];
        if (sscanf(text, "%lu:%d:%d:%d:%d:%d%n", &gpu->gpu_id, &gpu->simds, &gpu->per_cu, &gpu->waves,
                   &gpu->xccs, &gpu->target, &used) < 6) break;
        gpu_count++;
        text += used;
        text += strspn(text, " ");
    }
}

static gpu_t *gpu_of(uint64_t agent) {
    return agent >= 7000 && agent < 7000 + (uint64_t)gpu_count ? &gpus[agent - 7000] : NULL;
}

static const char *TEXTS[] = {[OK] = "Success", [BUSY] = "Context operation failed", [NOT_STARTED] = "Context has not been started",
    [LOCKED] = "Configuration request occurred outside of valid rocprofiler configuration period",
    [ABI] = "ABI incompatible", [NO_HSA] = "HSA is not loaded", [LIMIT] = "Counters exceed hardware limits"};

const char *rocprofiler_get_status_string(int status) {
    return status >= 0 && status <= LIMIT && TEXTS[status] ? TEXTS[status] : "Unnamed status";
}

int rocprofiler_get_version(uint32_t *major, uint32_t *minor, uint32_t *patch) {
    *major = MAJOR, *minor = MINOR, *patch = 0;
    return OK;
}

int rocprofiler_force_configure(void *(*configure)(uint32_t, const char *, uint32_t, void *)) {
    char client[64] = {0};
    note("force_configure");
    if (phase || hsa_up) return LOCKED;
    if (getenv("ROCP_TOOL_LIBRARIES") || getenv("HSA_TOOLS_LIB") || getenv("LD_PRELOAD")) {
        fprintf(stderr, "stand-in: the environment names another tool\n");
        abort();
    }
    read_gpus();
    result = configure(MAJOR * 10000 + MINOR * 100, "stand-in", 0, client);
    if (!result) return OK;
    if (result->size != 32) return ABI;
    phase = 1;
    result->initialize(NULL, result->data);
    phase = 2;
    setenv("ROCPROFILER_REGISTER_FORCE_LOAD", "1", 1);
    return OK;
}

#define PUT(bytes, offset, type, number) do { type it = (type)(number); memcpy((bytes) + (offset), &it, sizeof it); } while (0)

int rocprofiler_query_available_agents(int version, int (*each)(int, const void **, size_t, void *), size_t size, void *data) {
    const void *list[GPUS + 1];
    size_t bytes = AGENT_BYTES;
    note("query_available_agents");
    if (version != 1 || size > bytes) return ABI;
    for (int i = 0; i <= gpu_count; i++) {
        char *agent = agents[i];
        memset(agent, 0x5a, bytes);
        PUT(agent, 0, uint64_t, mode("larger-agent") ? bytes + 40 : bytes);
        PUT(agent, 16, int32_t, i ? 2 : 1); /* a CPU comes first */
        PUT(agent, 8, uint64_t, i ? 7000 + i - 1 : 6999);
        if (i) {
            gpu_t *gpu = &gpus[i - 1];
            PUT(agent, 24, uint32_t, gpu->simds);
            PUT(agent, 48, uint32_t, gpu->waves);
            PUT(agent, 68, uint32_t, gpu->xccs);
            PUT(agent, 72, uint32_t, gpu->simds / gpu->per_cu);
            PUT(agent, 92, uint32_t, gpu->per_cu);
            PUT(agent, 100, uint32_t, gpu->target);
            PUT(agent, 192, uint64_t, gpu->gpu_id);
        }
        list[i] = agent;
    }
    int status = each(version, list, gpu_count + 1, data);
    memset(agents, 0, sizeof agents); /* they are the caller's only while it is called back */
    return status;
}

int rocprofiler_create_context(uint64_t *context) {
    note("create_context");
    if (phase != 1) return LOCKED;
    if (*context) return NOT_ZERO;
    if (context_count == GPUS * 2) return RESOURCES;
    *context = 500 + context_count++;
    return OK;
}

static context_t *context_of(uint64_t context) {
    return context >= 500 && context < 500 + (uint64_t)context_count ? &contexts[context - 500] : NULL;
}

int rocprofiler_configure_device_counting_service(uint64_t context, uint64_t buffer, uint64_t agent, service_t service, void *data) {
    context_t *found = context_of(context);
    note("configure_device_counting_service");
    if (phase != 1) return LOCKED;
    if (!found) return CONTEXT_NOT_FOUND;
    if (buffer) return INVALID;
    if (!gpu_of(agent)) return AGENT_NOT_FOUND;
    if (mode("eperm")) fprintf(stderr, "W device counting: GPU could not be locked for profiling, check permissions (CAP_PERFMON)\n");
    if (mode("ebusy")) fprintf(stderr, "W device counting: GPU already has a profiler attached\n");
    if (mode("einval")) fprintf(stderr, "W device counting: Driver/Kernel version does not support locking\n");
    found->agent = agent, found->service = service, found->data = data;
    return OK;
}

int rocprofiler_iterate_agent_supported_counters(uint64_t agent, int (*each)(uint64_t, uint64_t *, size_t, void *), void *data) {
    uint64_t ids[NCOUNTERS];
    size_t count = 0;
    gpu_t *gpu = gpu_of(agent);
    if (!gpu) return AGENT_NOT_FOUND;
    for (int i = 0; i < NCOUNTERS; i++) {
        const char *name = COUNTERS[i].name, *missing = mode("missing");
        int is_old = !strncmp(name, "TCC_EA_", 7), is_new = !strncmp(name, "TCC_EA0_", 8) || !strcmp(name, "TCC_BUBBLE");
        if ((missing && !strcmp(missing, name)) || (gpu->target == 90010 ? is_new : is_old)) continue;
        if (!strcmp(name, "TCC_EA0_RDREQ_128B") && !(gpu->target == 90500 && VERSION_AT_LEAST(1, 1))) continue;
        ids[count++] = FIRST_COUNTER + i;
    }
    return each(agent, ids, count, data);
}

static int place_of(uint64_t counter) {
    return counter >= FIRST_COUNTER && counter < FIRST_COUNTER + NCOUNTERS ? (int)(counter - FIRST_COUNTER) : -1;
}

int rocprofiler_query_counter_info(uint64_t counter, int version, void *into) {
    int place = place_of(counter);
    if (version != 1) return ABI;
    if (place < 0) return COUNTER_NOT_FOUND;
    memset(into, 0, 48);
    PUT((char *)into, 0, uint64_t, counter);
    PUT((char *)into, 8, const char *, COUNTERS[place].name);
    PUT((char *)into, 24, const char *, COUNTERS[place].block);
    return OK;
}

static int room_of(const char *block) {
    const char *room = mode("sq-room");
    if (!strcmp(block, "SQ")) return room ? atoi(room) : 8;
    return !strcmp(block, "GRBM") ? 2 : 4;
}

static int make_config(uint64_t agent, uint64_t *counters, size_t count, uint64_t *config) {
    note("create_config");
    if (!gpu_of(agent)) return AGENT_NOT_FOUND;
    if (*config) return INVALID;
    if (config_count == 256 || count > 32) return RESOURCES;
    config_t *made = &configs[config_count];
    made->agent = agent, made->count = (int)count;
    for (size_t i = 0; i < count; i++) {
        int place = place_of(counters[i]), used = 0;
        if (place < 0) return COUNTER_NOT_FOUND;
        const char *invalid = mode("invalid");
        if (invalid && !strcmp(invalid, COUNTERS[place].name)) return NOT_VALID;
        for (size_t k = 0; k <= i; k++)
            used += !strcmp(COUNTERS[place_of(counters[k])].block, COUNTERS[place].block);
        if (used > room_of(COUNTERS[place].block)) return LIMIT;
        made->counters[i] = place;
    }
    *config = 900 + config_count++;
    return OK;
}

#if VERSION_AT_LEAST(1, 0)
int rocprofiler_create_counter_config(uint64_t agent, uint64_t *counters, size_t count, uint64_t *config) {
#else
int rocprofiler_create_profile_config(uint64_t agent, uint64_t *counters, size_t count, uint64_t *config) {
#endif
    return make_config(agent, counters, count, config);
}

static context_t *starting;

static int set_config(uint64_t context, uint64_t config) {
    context_t *found = context_of(context);
    if (!found || found != starting) return CONTEXT_NOT_FOUND;
    if (config < 900 || config >= 900 + (uint64_t)config_count) return INVALID;
    if (configs[config - 900].agent != found->agent) return INVALID;
    found->config = config;
    return OK;
}

int rocprofiler_start_context(uint64_t context) {
    context_t *found = context_of(context);
    const char *hidden = mode("hidden");
    note("start_context");
    if (!found || !found->service) return CONTEXT_NOT_FOUND;
    if (phase != 2) return LOCKED;
    if (!hsa_up) return NO_HSA;
    if (mode("abort-start")) {
        fprintf(stderr, "F0000 Check failed: the queue could not be made\n");
        abort();
    }
    if (hidden && strtoull(hidden, NULL, 10) == gpu_of(found->agent)->gpu_id) return AGENT_NOT_FOUND;
    if (found->runs) return BUSY;
    starting = found;
    found->service(context, found->agent, set_config, found->data);
    starting = NULL;
    if (!found->config) return INVALID;
    found->runs = 1, found->start = now();
    return OK;
}

int rocprofiler_stop_context(uint64_t context) {
    context_t *found = context_of(context);
    note("stop_context");
    if (!found) return CONTEXT_NOT_FOUND;
    found->runs = 0;
    return OK;
}

#if VERSION_AT_LEAST(0, 6)
static int instances_of(const char *block, gpu_t *gpu, int *per_xcc) {
    *per_xcc = 1;
    if (!strcmp(block, "SQ")) *per_xcc = gpu->target == 90010 ? 8 : 4;
    if (!strcmp(block, "TCC")) *per_xcc = gpu->target == 90010 ? 32 : 16;
    return gpu->xccs * *per_xcc;
}

static uint64_t record_id(int place, int xcc, int within) {
#ifdef IDS
    return ((uint64_t)within << 40 | (uint64_t)xcc << 20 | (uint64_t)(place + FIRST_COUNTER)) ^ 0x5000000000000000;
#else
    return (uint64_t)(place + FIRST_COUNTER) << 48 | (uint64_t)xcc << 6 | (uint64_t)within;
#endif
}

#endif

int rocprofiler_query_record_counter_id(uint64_t id, uint64_t *counter) {
#ifdef IDS
    *counter = id & 0xfffff;
#else
    *counter = id >> 48;
#endif
    return place_of(*counter) < 0 ? COUNTER_NOT_FOUND : OK;
}

int rocprofiler_query_record_dimension_position(uint64_t id, uint64_t dimension, size_t *position) {
#ifdef IDS
    *position = dimension == 3 ? id >> 20 & 0xfffff : id >> 40 & 0xfffff;
#else
    *position = dimension == 3 ? id >> 6 & 63 : id & 63;
#endif
    return OK;
}

int rocprofiler_iterate_counter_dimensions(uint64_t counter, int (*each)(const void *, size_t, void *), void *data) {
    char list[48] = {0};
    int place = place_of(counter);
    if (place < 0) return COUNTER_NOT_FOUND;
    PUT(list, 0, const char *, "DIMENSION_XCC");
    PUT(list, 16, uint64_t, 3);
    PUT(list, 24, const char *, "DIMENSION_INSTANCE");
    PUT(list, 40, uint64_t, 5);
    return each(list, 2, data);
}

#if VERSION_AT_LEAST(0, 6)
int rocprofiler_sample_device_counting_service(uint64_t context, uint64_t user, int flags, record_t *records, size_t *count) {
    context_t *found = context_of(context);
    size_t needed = 0, room = *count;
    int per_xcc;
    note("sample");
    if (!found) return CONTEXT_NOT_FOUND;
    if (!found->runs) return NOT_STARTED;
    if (flags) return INVALID;
    gpu_t *gpu = gpu_of(found->agent);
    config_t *config = &configs[found->config - 900];
    for (int i = 0; i < config->count; i++)
        needed += instances_of(COUNTERS[config->counters[i]].block, gpu, &per_xcc);
    *count = needed;
    if (needed > room) return RESOURCES;
    found->samples++;
    if (mode("hang-sample") && found->samples > 2) for (;;) pause();
    if (mode("fail-sample") && found->samples == 3) return BUSY;
    const char *hz = getenv("STAND_IN_HZ");
    double passed = now() - found->start, cycles = passed * (hz ? atof(hz) : 2e9);
    size_t at = 0;
    for (int i = 0; i < config->count; i++) {
        int place = config->counters[i], total_instances;
        const char *name = COUNTERS[place].name, *block = COUNTERS[place].block;
        total_instances = instances_of(block, gpu, &per_xcc);
        int is_sq = !strcmp(block, "SQ"), is_grbm = !strcmp(block, "GRBM");
        double total = cycles * (is_sq && (mode("eperm") || mode("ebusy") || mode("einval")) ? 0 : share_of(name));
        if (is_sq && mode("saturate") && total > 4294967295.0) total = 4294967295.0;
        for (int k = 0; k < total_instances; k++, at++) {
            int xcc = k / per_xcc;
            double slower = 1 - 0.01 * (gpu->xccs - 1 - xcc); /* the last die has the fastest clock */
            records[at].id = record_id(place, xcc, k % per_xcc);
            records[at].user = user, records[at].agent = found->agent;
            records[at].value = is_grbm ? cycles * slower * (strcmp(name, "GRBM_COUNT") ? share_of(name) : 1)
                                        : total / total_instances;
        }
    }
    return OK;
}
#else /* 0.5: no records are given back */
int rocprofiler_sample_device_counting_service(uint64_t context, uint64_t user, int flags) {
    (void)context, (void)user, (void)flags;
    return OK;
}
#endif

int stand_in_hsa_begins(void) {
    note("hsa_init");
    if (mode("no-register")) return 1;
    hsa_up = 1;
    return 0;
}

void stand_in_hsa_ends(void) {
    note("hsa_shut_down");
    if (result && result->finalize) result->finalize(result->data);
    phase = 3;
}
