/* A stand-in for the HSA runtime: what it does for profilers is to look for one among the global
 * symbols as it starts, as rocprofiler-register does. STAND_IN_HSA_STATUS is what hsa_init gives.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

int hsa_init(void) {
    const char *status = getenv("STAND_IN_HSA_STATUS");
    if (status) return (int)strtol(status, NULL, 0);
    int (*begins)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "stand_in_hsa_begins");
    if (begins) begins();
    return 0;
}

int hsa_shut_down(void) {
    void (*ends)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "stand_in_hsa_ends");
    if (ends) ends();
    return 0;
}
