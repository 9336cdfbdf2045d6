// A SQLite VFS that fails on request, for tests of what the store does after an I/O error.
#ifndef CNETWATCH_FAULT_VFS_H
#define CNETWATCH_FAULT_VFS_H

// Makes the VFS SQLite's default. It hands everything to the previous default, except writes and syncs
// of files whose path contains the marker of the armed fault. Callable more than once.
int netwatch_fault_vfs_install(void);

enum netwatch_fault {
    NETWATCH_FAULT_NONE = 0,
    // xSync answers SQLITE_IOERR_FSYNC.
    NETWATCH_FAULT_SYNC = 1,
    // xWrite answers SQLITE_FULL.
    NETWATCH_FAULT_FULL = 2,
    // xWrite answers SQLITE_IOERR_WRITE.
    NETWATCH_FAULT_WRITE = 3,
};

// Arms one fault for files whose path contains `marker` (at most 255 bytes), until it is armed anew.
void netwatch_fault_vfs_arm(enum netwatch_fault fault, const char *marker);

#endif
