#include "CNetwatchFaultVFS.h"

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum netwatch_fault armed = NETWATCH_FAULT_NONE;
static char marker_text[256];

static sqlite3_vfs *next;
static sqlite3_vfs fault_vfs;

// Our file: the path, then the next VFS's file behind it.
struct fault_file {
    sqlite3_file base;
    const char *path;
};

static sqlite3_file *inner(sqlite3_file *file) {
    return (sqlite3_file *)((struct fault_file *)file + 1);
}

static int is_armed(sqlite3_file *file, enum netwatch_fault fault) {
    const char *path = ((struct fault_file *)file)->path;
    pthread_mutex_lock(&lock);
    int result = armed == fault && path && strstr(path, marker_text) != NULL;
    pthread_mutex_unlock(&lock);
    return result;
}

static int fault_close(sqlite3_file *f) { return inner(f)->pMethods->xClose(inner(f)); }
static int fault_read(sqlite3_file *f, void *to, int count, sqlite3_int64 at) {
    return inner(f)->pMethods->xRead(inner(f), to, count, at);
}
static int fault_write(sqlite3_file *f, const void *from, int count, sqlite3_int64 at) {
    if (is_armed(f, NETWATCH_FAULT_FULL)) return SQLITE_FULL;
    if (is_armed(f, NETWATCH_FAULT_WRITE)) return SQLITE_IOERR_WRITE;
    return inner(f)->pMethods->xWrite(inner(f), from, count, at);
}
static int fault_truncate(sqlite3_file *f, sqlite3_int64 size) {
    return inner(f)->pMethods->xTruncate(inner(f), size);
}
static int fault_sync(sqlite3_file *f, int flags) {
    if (is_armed(f, NETWATCH_FAULT_SYNC)) return SQLITE_IOERR_FSYNC;
    return inner(f)->pMethods->xSync(inner(f), flags);
}
static int fault_size(sqlite3_file *f, sqlite3_int64 *size) {
    return inner(f)->pMethods->xFileSize(inner(f), size);
}
static int fault_lock(sqlite3_file *f, int level) { return inner(f)->pMethods->xLock(inner(f), level); }
static int fault_unlock(sqlite3_file *f, int level) { return inner(f)->pMethods->xUnlock(inner(f), level); }
static int fault_check(sqlite3_file *f, int *out) {
    return inner(f)->pMethods->xCheckReservedLock(inner(f), out);
}
static int fault_control(sqlite3_file *f, int operation, void *argument) {
    return inner(f)->pMethods->xFileControl(inner(f), operation, argument);
}
static int fault_sector(sqlite3_file *f) { return inner(f)->pMethods->xSectorSize(inner(f)); }
static int fault_device(sqlite3_file *f) { return inner(f)->pMethods->xDeviceCharacteristics(inner(f)); }
static int fault_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out) {
    return inner(f)->pMethods->xShmMap(inner(f), page, size, extend, out);
}
static int fault_shm_lock(sqlite3_file *f, int offset, int count, int flags) {
    return inner(f)->pMethods->xShmLock(inner(f), offset, count, flags);
}
static void fault_shm_barrier(sqlite3_file *f) { inner(f)->pMethods->xShmBarrier(inner(f)); }
static int fault_shm_unmap(sqlite3_file *f, int remove) {
    return inner(f)->pMethods->xShmUnmap(inner(f), remove);
}

// Version 2: with shared memory for the WAL, without memory-mapped reads.
static const sqlite3_io_methods methods = {
    2, fault_close, fault_read, fault_write, fault_truncate, fault_sync, fault_size, fault_lock,
    fault_unlock, fault_check, fault_control, fault_sector, fault_device, fault_shm_map, fault_shm_lock,
    fault_shm_barrier, fault_shm_unmap, 0, 0,
};

static int fault_open(
    sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out_flags
) {
    (void)vfs;
    ((struct fault_file *)file)->path = path;
    int result = next->xOpen(next, path, inner(file), flags, out_flags);
    file->pMethods = inner(file)->pMethods ? &methods : NULL;
    return result;
}

int netwatch_fault_vfs_install(void) {
    pthread_mutex_lock(&lock);
    int result = SQLITE_OK;
    if (!next) {
        sqlite3_initialize();
        next = sqlite3_vfs_find(NULL);
        fault_vfs = *next;
        fault_vfs.zName = "netwatch-fault";
        fault_vfs.szOsFile = (int)sizeof(struct fault_file) + next->szOsFile;
        fault_vfs.xOpen = fault_open;
        result = sqlite3_vfs_register(&fault_vfs, 1);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void netwatch_fault_vfs_arm(enum netwatch_fault fault, const char *marker) {
    pthread_mutex_lock(&lock);
    armed = fault;
    strncpy(marker_text, marker, sizeof(marker_text) - 1);
    pthread_mutex_unlock(&lock);
}
