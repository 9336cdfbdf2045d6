// Reads the number of allocations that `allocations.c` counts.
#ifndef NETWATCH_FLOORS_ALLOCATIONS_H
#define NETWATCH_FLOORS_ALLOCATIONS_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

// Returns the number of allocations of this process so far; -1 if they are not counted.
static inline int64_t floors_allocations(void) {
    void *program = dlopen(NULL, RTLD_NOW);
    int64_t (*count)(void) = program ? (int64_t (*)(void))dlsym(program, "floors_allocation_count") : NULL;
    return count ? count() : -1;
}

#endif
