// Files whose unsynced content is kept in memory, so that it is lost with the process.
#ifndef NETWATCH_FORGETTING_H
#define NETWATCH_FORGETTING_H

#include <sqlite3.h>

// A file and its unsynced content. All connections of the process that have the file open share it.
struct forgetful;

// Returns the file at a path; `NULL` unless `netwatch_forgetting_arm` was called for the path. `disk` is the underlying
// open file.
struct forgetful *forgetful_open(const char *path, sqlite3_file *disk);
void forgetful_close(struct forgetful *file);

// These functions implement the methods of `sqlite3_io_methods` with the same names. `disk` is the underlying file that
// the caller has open.
int forgetful_read(struct forgetful *file, sqlite3_file *disk, void *to, int count, sqlite3_int64 at);
int forgetful_write(
    struct forgetful *file, sqlite3_file *disk, const void *from, int count, sqlite3_int64 at
);
int forgetful_truncate(struct forgetful *file, sqlite3_file *disk, sqlite3_int64 size);
int forgetful_sync(struct forgetful *file, sqlite3_file *disk);
int forgetful_size(struct forgetful *file, sqlite3_int64 *size);

// Applies a failed sync: no later sync writes the content that is unsynced now, or reports an error for it.
void forgetful_lose(struct forgetful *file);

// Returns whether the power was cut while the file was open.
int forgetful_is_cut(struct forgetful *file);

// Returns whether a running program sees a file with content at this path, even if the content is not on the disk yet.
int forgetful_exists(const char *path);
// Removes the file's name. Its content is freed when the last connection closes it.
void forgetful_delete(const char *path);

#endif
