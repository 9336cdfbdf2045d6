#include "CNetwatchFaultVFS.h"
#include "faults.h"
#include "forgetting.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sqlite3_vfs *next;
static sqlite3_vfs fault_vfs;

// Our file, then the next VFS's file behind it.
struct fault_file {
    sqlite3_file base;
    // SQLite keeps it until the file is closed.
    const char *path;
    // What the disk does not have yet; `NULL` when nothing is forgotten.
    struct forgetful *memory;
};

static struct fault_file *ours(sqlite3_file *file) { return (struct fault_file *)file; }
static sqlite3_file *disk(sqlite3_file *file) { return (sqlite3_file *)(ours(file) + 1); }
static struct forgetful *memory(sqlite3_file *file) { return ours(file)->memory; }

// Whether a call is to end here, and with what.
static int fails(sqlite3_file *file, unsigned call, int *result) {
    if (netwatch_fault_strikes(ours(file)->path, call, result)) return 1;
    *result = SQLITE_IOERR;
    return memory(file) && forgetful_is_cut(memory(file));
}

// MARK: Content

static int do_write(sqlite3_file *f, const void *from, int count, sqlite3_int64 at) {
    if (memory(f)) return forgetful_write(memory(f), disk(f), from, count, at);
    return disk(f)->pMethods->xWrite(disk(f), from, count, at);
}

static int fault_close(sqlite3_file *f) {
    if (memory(f)) forgetful_close(memory(f));
    return disk(f)->pMethods->xClose(disk(f));
}
static int fault_read(sqlite3_file *f, void *to, int count, sqlite3_int64 at) {
    int result;
    if (fails(f, NETWATCH_CALL_READ, &result)) return result;
    if (memory(f)) return forgetful_read(memory(f), disk(f), to, count, at);
    return disk(f)->pMethods->xRead(disk(f), to, count, at);
}
static int fault_write(sqlite3_file *f, const void *from, int count, sqlite3_int64 at) {
    int result;
    if (!fails(f, NETWATCH_CALL_WRITE, &result)) return do_write(f, from, count, at);
    if (result != SQLITE_OK && !(memory(f) && forgetful_is_cut(memory(f)))) do_write(f, from, count / 2, at);
    return result;
}
static int fault_truncate(sqlite3_file *f, sqlite3_int64 size) {
    int result;
    if (fails(f, NETWATCH_CALL_TRUNCATE, &result)) return result;
    if (memory(f)) return forgetful_truncate(memory(f), disk(f), size);
    return disk(f)->pMethods->xTruncate(disk(f), size);
}
static int fault_sync(sqlite3_file *f, int flags) {
    int result;
    if (fails(f, NETWATCH_CALL_SYNC, &result)) {
        if (memory(f) && result != SQLITE_OK) forgetful_lose(memory(f));
        return result;
    }
    if (memory(f)) return forgetful_sync(memory(f), disk(f));
    return disk(f)->pMethods->xSync(disk(f), flags);
}
static int fault_size(sqlite3_file *f, sqlite3_int64 *size) {
    if (memory(f)) return forgetful_size(memory(f), size);
    return disk(f)->pMethods->xFileSize(disk(f), size);
}

// MARK: Everything else

static int fault_lock(sqlite3_file *f, int level) { return disk(f)->pMethods->xLock(disk(f), level); }
static int fault_unlock(sqlite3_file *f, int level) { return disk(f)->pMethods->xUnlock(disk(f), level); }
static int fault_check(sqlite3_file *f, int *out) {
    return disk(f)->pMethods->xCheckReservedLock(disk(f), out);
}
static int fault_control(sqlite3_file *f, int operation, void *argument) {
    // The size is ours to say.
    if (operation == SQLITE_FCNTL_SIZE_HINT && memory(f)) return SQLITE_OK;
    return disk(f)->pMethods->xFileControl(disk(f), operation, argument);
}
static int fault_sector(sqlite3_file *f) { return disk(f)->pMethods->xSectorSize(disk(f)); }
static int fault_device(sqlite3_file *f) { return disk(f)->pMethods->xDeviceCharacteristics(disk(f)); }

static void forget_index(const char *path) {
    char name[4096];
    if (snprintf(name, sizeof(name), "%s-shm", path) < (int)sizeof(name)) unlink(name);
}
static int fault_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out) {
    int result;
    if (fails(f, NETWATCH_CALL_SHM, &result)) return result;
    result = disk(f)->pMethods->xShmMap(disk(f), page, size, extend, out);
    if (memory(f)) forget_index(ours(f)->path);
    return result;
}
static int fault_shm_lock(sqlite3_file *f, int offset, int count, int flags) {
    return disk(f)->pMethods->xShmLock(disk(f), offset, count, flags);
}
static void fault_shm_barrier(sqlite3_file *f) { disk(f)->pMethods->xShmBarrier(disk(f)); }
static int fault_shm_unmap(sqlite3_file *f, int remove) {
    return disk(f)->pMethods->xShmUnmap(disk(f), remove);
}

// Version 2: with shared memory for the WAL, without memory-mapped reads.
static const sqlite3_io_methods methods = {
    2, fault_close, fault_read, fault_write, fault_truncate, fault_sync, fault_size, fault_lock,
    fault_unlock, fault_check, fault_control, fault_sector, fault_device, fault_shm_map, fault_shm_lock,
    fault_shm_barrier, fault_shm_unmap, 0, 0,
};

// MARK: Names

static int fault_open(
    sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out_flags
) {
    int result;
    (void)vfs;
    memset(file, 0, sizeof(struct fault_file));
    if (netwatch_fault_strikes(path, NETWATCH_CALL_OPEN, &result)) return result ? result : SQLITE_CANTOPEN;
    result = next->xOpen(next, path, disk(file), flags, out_flags);
    ours(file)->path = path;
    file->pMethods = disk(file)->pMethods ? &methods : NULL;
    if (result == SQLITE_OK) ours(file)->memory = forgetful_open(path, disk(file));
    return result;
}

static int fault_delete(sqlite3_vfs *vfs, const char *path, int sync_directory) {
    int result;
    (void)vfs;
    if (netwatch_fault_strikes(path, NETWATCH_CALL_DELETE, &result)) return result;
    forgetful_delete(path);
    return next->xDelete(next, path, sync_directory);
}

static int fault_access(sqlite3_vfs *vfs, const char *path, int flags, int *out) {
    (void)vfs;
    if (flags == SQLITE_ACCESS_EXISTS && forgetful_exists(path)) {
        *out = 1;
        return SQLITE_OK;
    }
    return next->xAccess(next, path, flags, out);
}

static int install(void) {
    sqlite3_initialize();
    next = sqlite3_vfs_find(NULL);
    fault_vfs = *next;
    fault_vfs.zName = "netwatch-fault";
    fault_vfs.szOsFile = (int)sizeof(struct fault_file) + next->szOsFile;
    fault_vfs.xOpen = fault_open;
    fault_vfs.xDelete = fault_delete;
    fault_vfs.xAccess = fault_access;
    return sqlite3_vfs_register(&fault_vfs, 1);
}

int netwatch_fault_vfs_install(void) {
    pthread_mutex_lock(&lock);
    int result = next ? SQLITE_OK : install();
    pthread_mutex_unlock(&lock);
    return result;
}
