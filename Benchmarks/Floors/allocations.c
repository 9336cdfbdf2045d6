// A library to preload into a program (LD_PRELOAD). Counts the allocations of all threads of the program: the calls of
// malloc(3), calloc(3), realloc(3), posix_memalign(3) and aligned_alloc(3). The program reads the number with
// `allocations.h`. Needs glibc.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

// The functions of glibc under names that this library does not replace. dlsym(3), which would find the originals,
// allocates memory itself.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static int64_t count;

int64_t floors_allocation_count(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }

static void floors_count(void) { __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED); }

void *malloc(size_t size) {
    floors_count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    floors_count();
    return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
    floors_count();
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    floors_count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    floors_count();
    void *memory = __libc_memalign(alignment, size);
    if (!memory) return ENOMEM;
    *result = memory;
    return 0;
}
