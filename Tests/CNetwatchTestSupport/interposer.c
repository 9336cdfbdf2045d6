// Tells the thread sanitizer about two kinds of synchronization that it does not recognize, and would report as races.
// Without the sanitizer this file is empty.
//
// The functions in this file replace functions of the Swift libraries, because the linker finds them first. They call
// the libraries' functions, and report the acquire or release to the sanitizer. InterposerTests exercises both kinds.
// Without this file the sanitizer reports races there.
//
// 1. Contended locks of `Synchronization.Mutex`, which `Lock` contains. The uncontended path of a mutex is inlined into our
// code, which is instrumented. The contended path is in libswiftSynchronization, which is not. Not covered: the third
// contended path, `_tryLockSlow` of `withLockIfAvailable`. Its caller in netwatch does not use the value, and LockTests
// synchronizes by other means.
//
// 2. Continuations that are resumed before their task suspends. `resume` releases the task, but then the task does not
// suspend, so that nothing acquires it (`swift_continuation_await` in Task.cpp of Swift 6.3). That function cannot be
// replaced. But afterwards the task calls `swift_task_switch` to return to its executor, before it uses the value.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NETWATCH_THREAD_SANITIZER 1
#endif
#endif

#ifdef NETWATCH_THREAD_SANITIZER
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

extern void __tsan_acquire(void *address);
extern void __tsan_release(void *address);
extern __attribute__((swiftcall)) void *swift_task_getCurrent(void);

// `Synchronization._MutexHandle._lockSlow(_: UInt32)`
#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
// `Synchronization._MutexHandle._unlockSlow()`
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

typedef __attribute__((swiftcall)) void (*lock_function)(uint32_t, __attribute__((swift_context)) void *);
typedef __attribute__((swiftasynccall)) void (*switch_function)(
    __attribute__((swift_async_context)) void *, void *, void *, void *);
typedef __attribute__((swiftcall)) void (*unlock_function)(__attribute__((swift_context)) void *);

static void *next_symbol(void **cache, const char *name) {
    void *found = __atomic_load_n(cache, __ATOMIC_RELAXED);
    if (!found) {
        found = dlsym(RTLD_NEXT, name);
        __atomic_store_n(cache, found, __ATOMIC_RELAXED);
    }
    return found;
}

__attribute__((swiftcall, visibility("default")))
void netwatch_lock_slow(uint32_t thread, __attribute__((swift_context)) void *handle) __asm__(LOCK_SLOW);

__attribute__((swiftcall, visibility("default")))
void netwatch_unlock_slow(__attribute__((swift_context)) void *handle) __asm__(UNLOCK_SLOW);

__attribute__((swiftcall))
void netwatch_lock_slow(uint32_t thread, __attribute__((swift_context)) void *handle) {
    static void *library;
    ((lock_function)next_symbol(&library, LOCK_SLOW))(thread, handle);
    __tsan_acquire(handle);
}

__attribute__((swiftcall))
void netwatch_unlock_slow(__attribute__((swift_context)) void *handle) {
    static void *library;
    __tsan_release(handle);
    ((unlock_function)next_symbol(&library, UNLOCK_SLOW))(handle);
}

__attribute__((swiftasynccall, visibility("default")))
void swift_task_switch(__attribute__((swift_async_context)) void *context, void *resume, void *identity,
                       void *implementation) {
    static void *library;
    switch_function next = (switch_function)next_symbol(&library, "swift_task_switch");
    void *task = swift_task_getCurrent();
    if (task) __tsan_acquire(task);
    __attribute__((musttail)) return next(context, resume, identity, implementation);
}
#else
// An empty translation unit is not ISO C.
typedef int netwatch_interposer_is_for_the_thread_sanitizer;
#endif
