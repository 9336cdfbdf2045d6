// Files whose unsynced content is kept in memory.
#ifndef NETWATCH_FORGETTING_H
#define NETWATCH_FORGETTING_H

#include <sqlite3.h>

// A file and its unsynced content. All users in the process that have the file open share it.
struct forgetful;

// Returns `NULL` unless forgetting is armed for this path. `disk` is the underlying open file.
struct forgetful *forgetful_open(const char *path, sqlite3_file *disk);
void forgetful_close(struct forgetful *file);

// Implement the methods of `sqlite3_io_methods` with the same names. `disk` is the caller's underlying open file.
int forgetful_read(struct forgetful *file, sqlite3_file *disk, void *to, int count, sqlite3_int64 at);
int forgetful_write(
    struct forgetful *file, sqlite3_file *disk, const void *from, int count, sqlite3_int64 at
);
int forgetful_truncate(struct forgetful *file, sqlite3_file *disk, sqlite3_int64 size);
int forgetful_sync(struct forgetful *file, sqlite3_file *disk);
int forgetful_size(struct forgetful *file, sqlite3_int64 *size);

// Applies a failed sync: the unsynced content is never written to the disk, and later syncs report no error for it.
void forgetful_lose(struct forgetful *file);

// Returns whether power was cut while the file was open.
int forgetful_is_cut(struct forgetful *file);

// Returns whether running programs see a file with content at this path, even if the disk has none yet.
int forgetful_exists(const char *path);
// Removes the file's name. Its content is freed when the last user closes it.
void forgetful_delete(const char *path);

#endif
