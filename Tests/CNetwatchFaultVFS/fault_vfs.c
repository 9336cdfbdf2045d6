#include "CNetwatchFaultVFS.h"
#include "faults.h"
#include "unsynced_file.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sqlite3_vfs *next;
static sqlite3_vfs fault_vfs;

// An open file of this VFS. The file of the next VFS, to which calls are forwarded, follows it in memory.
struct fault_file {
    sqlite3_file base;
    // The path, which SQLite keeps valid until the file is closed.
    const char *path;
    // The unsynced content; `NULL` if power cuts are not armed for the file.
    struct unsynced_file *memory;
};

static struct fault_file *ours(sqlite3_file *file) { return (struct fault_file *)file; }
static sqlite3_file *disk(sqlite3_file *file) { return (sqlite3_file *)(ours(file) + 1); }
static struct unsynced_file *memory(sqlite3_file *file) { return ours(file)->memory; }

static int is_cut(sqlite3_file *file) { return memory(file) && unsynced_file_is_cut(memory(file)); }

// Returns whether a call must fail, and then sets `fault`.
static int ends(sqlite3_file *file, unsigned calls, struct netwatch_fault *fault) {
    if (is_cut(file)) {
        *fault = (struct netwatch_fault){.result = SQLITE_IOERR};
        return 1;
    }
    return netwatch_fault_strikes(ours(file)->path, calls, fault);
}

// Like `ends`, for a call that cannot be half done: sets `result`, or kills the process if the fault demands it.
static int fails(sqlite3_file *file, unsigned calls, int *result) {
    struct netwatch_fault fault;
    if (!ends(file, calls, &fault)) return 0;
    if (fault.kills) netwatch_fault_kill();
    *result = fault.result;
    return 1;
}

// Returns the kinds of a call: `call`, and also `of_database` unless the file is a WAL.
static unsigned kinds(sqlite3_file *file, unsigned call, unsigned of_database) {
    const char *path = ours(file)->path;
    size_t length = path ? strlen(path) : 0;
    int is_wal = length > 4 && strcmp(path + length - 4, "-wal") == 0;
    return is_wal ? call : call | of_database;
}

// MARK: Content

static int do_write(sqlite3_file *f, const void *from, int count, sqlite3_int64 at) {
    if (memory(f)) return unsynced_file_write(memory(f), disk(f), from, count, at);
    return disk(f)->pMethods->xWrite(disk(f), from, count, at);
}

static int fault_close(sqlite3_file *f) {
    if (memory(f)) unsynced_file_close(memory(f));
    return disk(f)->pMethods->xClose(disk(f));
}
static int fault_read(sqlite3_file *f, void *to, int count, sqlite3_int64 at) {
    int result;
    if (fails(f, NETWATCH_CALL_READ, &result)) return result;
    if (memory(f)) return unsynced_file_read(memory(f), disk(f), to, count, at);
    return disk(f)->pMethods->xRead(disk(f), to, count, at);
}
static int fault_write(sqlite3_file *f, const void *from, int count, sqlite3_int64 at) {
    struct netwatch_fault fault;
    unsigned calls = kinds(f, NETWATCH_CALL_WRITE, NETWATCH_CALL_DATABASE_WRITE);
    if (!ends(f, calls, &fault)) return do_write(f, from, count, at);
    if (is_cut(f)) return fault.result;
    if (fault.result != SQLITE_OK || fault.kills) do_write(f, from, count / 2, at);
    if (fault.kills) netwatch_fault_kill();
    return fault.result;
}
static int fault_truncate(sqlite3_file *f, sqlite3_int64 size) {
    int result;
    if (fails(f, NETWATCH_CALL_TRUNCATE, &result)) return result;
    if (memory(f)) return unsynced_file_truncate(memory(f), disk(f), size);
    return disk(f)->pMethods->xTruncate(disk(f), size);
}
static int fault_sync(sqlite3_file *f, int flags) {
    int result;
    if (fails(f, kinds(f, NETWATCH_CALL_SYNC, NETWATCH_CALL_DATABASE_SYNC), &result)) {
        if (memory(f) && result != SQLITE_OK) unsynced_file_lose(memory(f));
        return result;
    }
    if (memory(f)) return unsynced_file_sync(memory(f), disk(f));
    return disk(f)->pMethods->xSync(disk(f), flags);
}
static int fault_size(sqlite3_file *f, sqlite3_int64 *size) {
    if (memory(f)) return unsynced_file_size(memory(f), size);
    return disk(f)->pMethods->xFileSize(disk(f), size);
}

// MARK: Other methods

static int fault_lock(sqlite3_file *f, int level) { return disk(f)->pMethods->xLock(disk(f), level); }
static int fault_unlock(sqlite3_file *f, int level) { return disk(f)->pMethods->xUnlock(disk(f), level); }
static int fault_check(sqlite3_file *f, int *out) {
    return disk(f)->pMethods->xCheckReservedLock(disk(f), out);
}
static int fault_control(sqlite3_file *f, int operation, void *argument) {
    // The hint about the future size is ignored, because the size of the file is kept in memory.
    if (operation == SQLITE_FCNTL_SIZE_HINT && memory(f)) return SQLITE_OK;
    return disk(f)->pMethods->xFileControl(disk(f), operation, argument);
}
static int fault_sector(sqlite3_file *f) { return disk(f)->pMethods->xSectorSize(disk(f)); }
static int fault_device(sqlite3_file *f) { return disk(f)->pMethods->xDeviceCharacteristics(disk(f)); }

static void delete_index(const char *path) {
    char name[4096];
    if (snprintf(name, sizeof(name), "%s-shm", path) < (int)sizeof(name)) unlink(name);
}
static int fault_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out) {
    int result;
    if (fails(f, NETWATCH_CALL_SHM, &result)) return result;
    result = disk(f)->pMethods->xShmMap(disk(f), page, size, extend, out);
    if (memory(f)) delete_index(ours(f)->path);
    return result;
}
static int fault_shm_lock(sqlite3_file *f, int offset, int count, int flags) {
    return disk(f)->pMethods->xShmLock(disk(f), offset, count, flags);
}
static void fault_shm_barrier(sqlite3_file *f) { disk(f)->pMethods->xShmBarrier(disk(f)); }
static int fault_shm_unmap(sqlite3_file *f, int remove) {
    return disk(f)->pMethods->xShmUnmap(disk(f), remove);
}

// Version 2 of the methods has shared memory, which WAL mode needs, but no memory-mapped reads.
static const sqlite3_io_methods methods = {
    2, fault_close, fault_read, fault_write, fault_truncate, fault_sync, fault_size, fault_lock,
    fault_unlock, fault_check, fault_control, fault_sector, fault_device, fault_shm_map, fault_shm_lock,
    fault_shm_barrier, fault_shm_unmap, 0, 0,
};

// MARK: Names

static int fault_open(
    sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out_flags
) {
    struct netwatch_fault fault;
    (void)vfs;
    memset(file, 0, sizeof(struct fault_file));
    if (netwatch_fault_strikes(path, NETWATCH_CALL_OPEN, &fault)) {
        if (fault.kills) netwatch_fault_kill();
        return fault.result ? fault.result : SQLITE_CANTOPEN;
    }
    int result = next->xOpen(next, path, disk(file), flags, out_flags);
    ours(file)->path = path;
    file->pMethods = disk(file)->pMethods ? &methods : NULL;
    if (result == SQLITE_OK) ours(file)->memory = unsynced_file_open(path, disk(file));
    return result;
}

static int fault_delete(sqlite3_vfs *vfs, const char *path, int sync_directory) {
    struct netwatch_fault fault;
    (void)vfs;
    if (netwatch_fault_strikes(path, NETWATCH_CALL_DELETE, &fault)) {
        if (fault.kills) netwatch_fault_kill();
        return fault.result;
    }
    unsynced_file_delete(path);
    return next->xDelete(next, path, sync_directory);
}

static int fault_access(sqlite3_vfs *vfs, const char *path, int flags, int *out) {
    (void)vfs;
    if (flags == SQLITE_ACCESS_EXISTS && unsynced_file_exists(path)) {
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

// MARK: Checkpoints

static int checkpoint_pages;

static int set_checkpoints(sqlite3 *database, char **message, const struct sqlite3_api_routines *routines) {
    (void)message;
    (void)routines;
    pthread_mutex_lock(&lock);
    int pages = checkpoint_pages;
    pthread_mutex_unlock(&lock);
    return sqlite3_wal_autocheckpoint(database, pages);
}

int netwatch_checkpoint_every(int pages) {
    pthread_mutex_lock(&lock);
    checkpoint_pages = pages;
    pthread_mutex_unlock(&lock);
    return sqlite3_auto_extension((void (*)(void))set_checkpoints);
}
