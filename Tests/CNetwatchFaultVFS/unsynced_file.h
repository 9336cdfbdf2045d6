// Files whose unsynced content is kept in memory, so that it is lost with the process.
#ifndef NETWATCH_UNSYNCED_FILE_H
#define NETWATCH_UNSYNCED_FILE_H

#include <sqlite3.h>

// A file and its unsynced content. All connections of the process that have the file open share it.
struct unsynced_file;

// Returns the file at a path; `NULL` unless `netwatch_power_cut_arm` was called for the path. `disk` is the underlying
// open file.
struct unsynced_file *unsynced_file_open(const char *path, sqlite3_file *disk);
void unsynced_file_close(struct unsynced_file *file);

// These functions implement the methods of `sqlite3_io_methods` with the same names. `disk` is the underlying file that
// the caller has open.
int unsynced_file_read(struct unsynced_file *file, sqlite3_file *disk, void *to, int count, sqlite3_int64 at);
int unsynced_file_write(
    struct unsynced_file *file, sqlite3_file *disk, const void *from, int count, sqlite3_int64 at
);
int unsynced_file_truncate(struct unsynced_file *file, sqlite3_file *disk, sqlite3_int64 size);
int unsynced_file_sync(struct unsynced_file *file, sqlite3_file *disk);
int unsynced_file_size(struct unsynced_file *file, sqlite3_int64 *size);

// Applies a failed sync: no later sync writes the content that is unsynced now, or reports an error for it.
void unsynced_file_lose(struct unsynced_file *file);

// Returns whether the power was cut while the file was open.
int unsynced_file_is_cut(struct unsynced_file *file);

// Returns whether a running program sees a file with content at this path, even if the content is not on the disk yet.
int unsynced_file_exists(const char *path);
// Removes the file's name. Its content is freed when the last connection closes it.
void unsynced_file_delete(const char *path);

#endif
