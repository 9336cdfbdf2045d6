// Files whose unsynced part is kept in memory.
#ifndef NETWATCH_FORGETTING_H
#define NETWATCH_FORGETTING_H

#include <sqlite3.h>

// One file of the disk with what is not on the disk yet; shared by everyone in the process who has it open.
struct forgetful;

// `NULL` unless forgetting is armed for this path. `disk` is the open file beneath.
struct forgetful *forgetful_open(const char *path, sqlite3_file *disk);
void forgetful_close(struct forgetful *file);

// As the methods of the same names of `sqlite3_io_methods`; `disk` is the caller's open file beneath.
int forgetful_read(struct forgetful *file, sqlite3_file *disk, void *to, int count, sqlite3_int64 at);
int forgetful_write(
    struct forgetful *file, sqlite3_file *disk, const void *from, int count, sqlite3_int64 at
);
int forgetful_truncate(struct forgetful *file, sqlite3_file *disk, sqlite3_int64 size);
int forgetful_sync(struct forgetful *file, sqlite3_file *disk);
int forgetful_size(struct forgetful *file, sqlite3_int64 *size);

// What follows a sync that failed: nothing of what was written will be, and nobody is told again.
void forgetful_lose(struct forgetful *file);

// Whether power was cut while the file was open.
int forgetful_is_cut(struct forgetful *file);

// Whether a file that was created, or written, exists for the programs that run, whatever the disk has.
int forgetful_exists(const char *path);
// Its name goes, and its content with the last who has it open.
void forgetful_delete(const char *path);

#endif
