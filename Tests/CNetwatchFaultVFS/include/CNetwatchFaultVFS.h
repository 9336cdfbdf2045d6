// A SQLite VFS whose disk fails and forgets on request, for tests of what a store then still has.
//
// It hands everything to the VFS that was SQLite's default before. What is armed concerns the files whose path
// contains a marker, so that tests beside each other do not meet when their directories have names of their
// own. Every function may be called from any thread.
#ifndef CNETWATCH_FAULT_VFS_H
#define CNETWATCH_FAULT_VFS_H

// Registers the VFS as "netwatch-fault" and makes it SQLite's default. Callable more than once. Returns a
// result code of SQLite.
int netwatch_fault_vfs_install(void);

// Lets every connection that is opened from now on checkpoint its WAL by itself at so many pages, instead of at
// 1,000; 0 for never. Returns a result code of SQLite.
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
    // Mapping a page of the WAL's index.
    NETWATCH_CALL_SHM = 64,
    // Those writes and syncs that are not of the WAL: a checkpoint's, once there is a WAL.
    NETWATCH_CALL_DATABASE_WRITE = 128,
    NETWATCH_CALL_DATABASE_SYNC = 256,
};

struct netwatch_fault {
    // Which calls are counted: bits of `enum netwatch_call`.
    unsigned calls;
    // What a failing call answers, without having done its work; half of it for a write, as happens on a full
    // disk. SQLITE_OK is a lie: nothing of it was done.
    int result;
    // Which of the counted calls fails; 1 is the next one.
    long first;
    // 0: only that one fails. 1: so do all that follow.
    int persists;
    // 1: the process ends in it by SIGKILL; in the middle of a write.
    int kills;
};

// Arms a fault. Returns its number for the other two functions, or -1 when 64 are armed. `marker`: at most 255
// bytes.
int netwatch_fault_arm(const char *marker, struct netwatch_fault fault);

// How many of its calls were made since it was armed; the fault has struck when that is at least `first`.
long netwatch_fault_calls(int number);

void netwatch_fault_disarm(int number);

// MARK: Forgetting

// From now on a file that is opened with `marker` in its path keeps what is written to it in this process's
// memory until it is synced. The end of the process is then a power cut. The index of the WAL, which nobody
// ever syncs, has no name while it is used, and is gone too. At most one marker of 255 bytes.
//
// A disk may also write what nobody asked it to yet: of each 1,000 sectors of 512 bytes, and of each 1,000
// truncations, about `leaked_per_mille` reach it at once, drawn by `seed`.
//
// Names are on the disk at once: that a file was made or deleted is not forgotten.
//
// A sync that fails by a fault is answered as Linux does: what was to be written counts as written, is still
// read, and is never written again.
void netwatch_forgetting_arm(const char *marker, unsigned leaked_per_mille, unsigned long long seed);

// The power cut without the end of the process: what was not synced is forgotten, and every later call on a file
// with `marker` in its path that is open now answers SQLITE_IOERR. Opening it anew finds what the disk has.
void netwatch_forgetting_cut(const char *marker);

#endif
