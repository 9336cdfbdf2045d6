// A SQLite VFS with a disk that fails or loses unsynced writes on request. Tests use it to check what a store retains.
//
// All calls go to the previous default VFS. Faults affect files whose path contains a marker, so parallel tests do not
// affect each other if the names of their directories differ. Every function may be called from any thread.
#ifndef CNETWATCH_FAULT_VFS_H
#define CNETWATCH_FAULT_VFS_H

// Registers the VFS as "netwatch-fault" and makes it SQLite's default. Later calls have no effect. Returns a SQLite
// result code.
int netwatch_fault_vfs_install(void);

// Sets the number of pages at which connections opened later checkpoint their WAL automatically (SQLite's default:
// 1,000). 0 disables automatic checkpoints. Returns a SQLite result code.
int netwatch_checkpoint_every(int pages);

// MARK: Failing

// The calls of the VFS that can fail, as bits.
enum netwatch_call {
    NETWATCH_CALL_OPEN = 1,
    NETWATCH_CALL_READ = 2,
    NETWATCH_CALL_WRITE = 4,
    NETWATCH_CALL_SYNC = 8,
    NETWATCH_CALL_TRUNCATE = 16,
    NETWATCH_CALL_DELETE = 32,
    // Mapping a page of the WAL index.
    NETWATCH_CALL_SHM = 64,
    // Writes and syncs of files other than a WAL. In WAL mode, these are a checkpoint's.
    NETWATCH_CALL_DATABASE_WRITE = 128,
    NETWATCH_CALL_DATABASE_SYNC = 256,
};

struct netwatch_fault {
    // The calls to count: bits of `enum netwatch_call`.
    unsigned calls;
    // The result of a failing call. The call does nothing, but a failing write still writes its first half, as on a
    // full disk. With SQLITE_OK, the call does nothing and falsely reports success.
    int result;
    // The number of the first counted call that fails; 1 is the next one.
    long first;
    // 0: only that call fails. 1: all later calls fail too.
    int persists;
    // 1: the call kills the process with SIGKILL; a write is then half done.
    int kills;
};

// Arms a fault. Returns its number for the functions below, or -1 if 64 faults are armed. `marker`: at most 255 bytes.
int netwatch_fault_arm(const char *marker, struct netwatch_fault fault);

// Returns the number of counted calls since the fault was armed. The fault has occurred if this is at least `first`.
long netwatch_fault_calls(int number);

void netwatch_fault_disarm(int number);

// MARK: Forgetting

// Keeps unsynced writes in this process's memory, for every file opened from now on with `marker` in its path. The end
// of the process then acts as a power cut. The WAL index is lost too: SQLite never syncs it, and its file is unlinked
// while in use. Only one marker, of at most 255 bytes, can be armed.
//
// A real disk can also write data before a sync. Of every 1,000 sectors of 512 bytes and every 1,000 truncations, about
// `leaked_per_mille` reach the disk immediately, chosen at random with `seed`.
//
// File names reach the disk immediately: the creation and deletion of files is not lost.
//
// A sync that fails by a fault behaves as on Linux: the unsynced data counts as written and remains readable, but is
// never written again.
void netwatch_forgetting_arm(const char *marker, unsigned leaked_per_mille, unsigned long long seed);

// Simulates a power cut without ending the process. Unsynced data is lost, and all later calls on open files with
// `marker` in their path return SQLITE_IOERR. A file that is opened again has the disk's content.
void netwatch_forgetting_cut(const char *marker);

#endif
