// An SQLite VFS (virtual file system) whose disk fails or loses unsynced writes when a test demands it.
//
// The VFS forwards all calls to the previous default VFS. Faults affect only files whose path contains a marker, a text
// that the test chooses. Parallel tests do not affect each other if they use different directory names as markers.
// Every function may be called from any thread.
#ifndef CNETWATCH_FAULT_VFS_H
#define CNETWATCH_FAULT_VFS_H

// Registers the VFS as "netwatch-fault" and makes it SQLite's default. Later calls have no effect. Returns an SQLite
// result code.
int netwatch_fault_vfs_install(void);

// Sets the number of pages in the write-ahead log (WAL) at which SQLite starts an automatic checkpoint, for connections
// that are opened later. SQLite's default is 1,000; 0 disables automatic checkpoints. Returns an SQLite result code.
int netwatch_checkpoint_every(int pages);

// MARK: Failing

// The calls of the VFS that can fail, as bits of a set.
enum netwatch_call {
    NETWATCH_CALL_OPEN = 1,
    NETWATCH_CALL_READ = 2,
    NETWATCH_CALL_WRITE = 4,
    NETWATCH_CALL_SYNC = 8,
    NETWATCH_CALL_TRUNCATE = 16,
    NETWATCH_CALL_DELETE = 32,
    // Mapping a page of the index of the WAL (the -shm file).
    NETWATCH_CALL_SHM = 64,
    // Writes and syncs of files other than a WAL. In WAL mode, these are the writes and syncs of a checkpoint.
    NETWATCH_CALL_DATABASE_WRITE = 128,
    NETWATCH_CALL_DATABASE_SYNC = 256,
};

// Calls that fail.
struct netwatch_fault {
    // The calls that are counted and can fail: bits of `enum netwatch_call`.
    unsigned calls;
    // The result of a failing call. A failing write writes its first half, as on a full disk; any other failing call
    // has no effect. With SQLITE_OK, a call has no effect at all, and falsely reports success.
    int result;
    // The number of the first counted call that fails; 1 is the next counted call.
    long first;
    // 0: only that call fails. 1: all later counted calls fail, too.
    int persists;
    // 1: the call kills the process with SIGKILL instead of failing. A write is then half done.
    int kills;
};

// Arms a fault for all files whose path contains `marker`, which has at most 255 bytes. Returns the fault's number for
// the functions below, or -1 if 64 faults are already armed.
int netwatch_fault_arm(const char *marker, struct netwatch_fault fault);

// Returns the number of counted calls since the fault was armed. The fault has occurred if this is at least `first`.
long netwatch_fault_calls(int number);

// Ends a fault. Later calls succeed, and the number may be used for another fault.
void netwatch_fault_disarm(int number);

// MARK: Power cuts

// Keeps unsynced writes in the memory of this process, for every file with `marker` in its path that is opened from now
// on. The end of the process then has the effect of a power cut. The index of the WAL is lost as well, because SQLite
// never syncs it, and its file is unlinked while it is in use. Only one marker can be armed. It has at most 255 bytes.
//
// A real disk may also write data before a sync. Therefore some writes reach the disk at once: about `leaked_per_mille`
// of 1,000 sectors of 512 bytes, and as many of 1,000 truncations. They are chosen at random with `seed`.
//
// Created and deleted file names reach the disk at once, and are not lost.
//
// A sync that fails because of a fault has the same effect as on Linux. The unsynced data can still be read, but counts
// as written: no later sync writes it.
void netwatch_power_cut_arm(const char *marker, unsigned leaked_per_mille, unsigned long long seed);

// Simulates a power cut without ending the process, for files with `marker` in their path. Unsynced data is lost, and
// all later calls on files that are open return SQLITE_IOERR. A file that is opened again has the content of the disk.
void netwatch_power_cut(const char *marker);

#endif
