#include "unsynced_file.h"
#include "CNetwatchFaultVFS.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096
#define SECTOR 512

struct page {
    // Whether the page has unsynced content. A page that is kept in memory although it is not dirty was lost in a
    // failed sync.
    int is_dirty;
    unsigned char bytes[PAGE];
};

struct unsynced_file {
    struct unsynced_file *next;
    char *path;
    int users;
    // Whether the file can be found by its path: it was not deleted.
    int is_named;
    int is_cut;
    // The size of the file that programs see.
    sqlite3_int64 size;
    // The length of the valid part of the file on the disk. An unsynced truncation has removed the bytes after it.
    sqlite3_int64 floor;
    struct page **pages;
    size_t page_count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct unsynced_file *files;
static char marker[256];
static int is_armed;
static unsigned leaked_per_mille;
static unsigned long long random_state;

// MARK: Arming

void netwatch_power_cut_arm(const char *text, unsigned per_mille, unsigned long long seed) {
    pthread_mutex_lock(&lock);
    strncpy(marker, text, sizeof(marker) - 1);
    leaked_per_mille = per_mille;
    random_state = seed;
    is_armed = 1;
    pthread_mutex_unlock(&lock);
}

void netwatch_power_cut(const char *text) {
    pthread_mutex_lock(&lock);
    for (struct unsynced_file *file = files; file; file = file->next) {
        if (!file->is_named || !strstr(file->path, text)) continue;
        file->is_cut = 1;
        file->is_named = 0;
    }
    pthread_mutex_unlock(&lock);
}

// Returns whether a write reaches the disk before a sync, at random (SplitMix64). The caller holds the lock.
static int leaks(void) {
    unsigned long long value = random_state += 0x9e3779b97f4a7c15ull;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    return (value ^ (value >> 31)) % 1000 < leaked_per_mille;
}

// MARK: Names

static struct unsynced_file *find(const char *path) {
    for (struct unsynced_file *file = files; file; file = file->next) {
        if (file->is_named && strcmp(file->path, path) == 0) return file;
    }
    return NULL;
}

static void free_pages(struct unsynced_file *file, size_t first) {
    for (size_t i = first; i < file->page_count; i++) {
        free(file->pages[i]);
        file->pages[i] = NULL;
    }
}

// Frees a file that is neither open nor has a name. A file with a name keeps its unsynced content, because closing a
// file does not sync it.
static void release(struct unsynced_file *file) {
    if (file->users > 0 || file->is_named) return;
    struct unsynced_file **link = &files;
    while (*link != file) link = &(*link)->next;
    *link = file->next;
    free_pages(file, 0);
    free(file->pages);
    free(file->path);
    free(file);
}

static struct unsynced_file *make(const char *path, sqlite3_file *disk) {
    struct unsynced_file *file = calloc(1, sizeof(*file));
    file->path = strdup(path);
    file->is_named = 1;
    disk->pMethods->xFileSize(disk, &file->size);
    file->floor = file->size;
    file->next = files;
    files = file;
    return file;
}

struct unsynced_file *unsynced_file_open(const char *path, sqlite3_file *disk) {
    struct unsynced_file *file = NULL;
    pthread_mutex_lock(&lock);
    if (is_armed && path && strstr(path, marker)) {
        file = find(path);
        if (!file) file = make(path, disk);
        file->users++;
    }
    pthread_mutex_unlock(&lock);
    return file;
}

void unsynced_file_close(struct unsynced_file *file) {
    pthread_mutex_lock(&lock);
    file->users--;
    release(file);
    pthread_mutex_unlock(&lock);
}

int unsynced_file_exists(const char *path) {
    pthread_mutex_lock(&lock);
    struct unsynced_file *file = find(path);
    int exists = file && file->size > 0;
    pthread_mutex_unlock(&lock);
    return exists;
}

void unsynced_file_delete(const char *path) {
    pthread_mutex_lock(&lock);
    struct unsynced_file *file = find(path);
    if (file) {
        file->is_named = 0;
        release(file);
    }
    pthread_mutex_unlock(&lock);
}

int unsynced_file_is_cut(struct unsynced_file *file) {
    pthread_mutex_lock(&lock);
    int is_cut = file->is_cut;
    pthread_mutex_unlock(&lock);
    return is_cut;
}

// MARK: Content (the caller holds the lock)

static sqlite3_int64 least(sqlite3_int64 a, sqlite3_int64 b) { return a < b ? a : b; }

// Reads a range of the file on the disk. Bytes that do not exist there, or that were truncated, are zero.
static int read_disk(
    struct unsynced_file *file, sqlite3_file *disk, unsigned char *to, sqlite3_int64 count, sqlite3_int64 at
) {
    sqlite3_int64 there = least(file->floor - at, count);
    memset(to, 0, (size_t)count);
    if (there <= 0) return SQLITE_OK;
    int result = disk->pMethods->xRead(disk, to, (int)there, at);
    return result == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : result;
}

static struct page *known_page(struct unsynced_file *file, size_t number) {
    return number < file->page_count ? file->pages[number] : NULL;
}

static void make_room(struct unsynced_file *file, size_t number) {
    if (number < file->page_count) return;
    size_t count = number + 1 + file->page_count;
    file->pages = realloc(file->pages, count * sizeof(*file->pages));
    memset(file->pages + file->page_count, 0, (count - file->page_count) * sizeof(*file->pages));
    file->page_count = count;
}

static int page(struct unsynced_file *file, sqlite3_file *disk, size_t number, struct page **out) {
    make_room(file, number);
    if (!file->pages[number]) {
        struct page *fresh = calloc(1, sizeof(*fresh));
        int result = read_disk(file, disk, fresh->bytes, PAGE, (sqlite3_int64)number * PAGE);
        if (result != SQLITE_OK) {
            free(fresh);
            return result;
        }
        file->pages[number] = fresh;
    }
    *out = file->pages[number];
    return SQLITE_OK;
}

// Writes the bytes of some sectors of this write to the disk before a sync.
static void leak(sqlite3_file *disk, const unsigned char *from, sqlite3_int64 count, sqlite3_int64 at) {
    while (count > 0 && leaked_per_mille > 0) {
        sqlite3_int64 part = least(SECTOR - at % SECTOR, count);
        if (leaks()) disk->pMethods->xWrite(disk, from, (int)part, at);
        from += part;
        at += part;
        count -= part;
    }
}

static int write_pages(
    struct unsynced_file *file, sqlite3_file *disk, const unsigned char *from, sqlite3_int64 count,
    sqlite3_int64 at
) {
    leak(disk, from, count, at);
    while (count > 0) {
        struct page *target;
        sqlite3_int64 part = least(PAGE - at % PAGE, count);
        int result = page(file, disk, (size_t)(at / PAGE), &target);
        if (result != SQLITE_OK) return result;
        memcpy(target->bytes + at % PAGE, from, (size_t)part);
        target->is_dirty = 1;
        from += part;
        at += part;
        count -= part;
        if (at > file->size) file->size = at;
    }
    return SQLITE_OK;
}

static int read_pages(
    struct unsynced_file *file, sqlite3_file *disk, unsigned char *to, sqlite3_int64 count, sqlite3_int64 at
) {
    while (count > 0) {
        sqlite3_int64 part = least(PAGE - at % PAGE, count);
        struct page *known = known_page(file, (size_t)(at / PAGE));
        int result = SQLITE_OK;
        if (known) {
            memcpy(to, known->bytes + at % PAGE, (size_t)part);
        } else {
            result = read_disk(file, disk, to, part, at);
        }
        if (result != SQLITE_OK) return result;
        to += part;
        at += part;
        count -= part;
    }
    return SQLITE_OK;
}

static void truncate_pages(struct unsynced_file *file, sqlite3_int64 size) {
    struct page *last = known_page(file, (size_t)(size / PAGE));
    if (last) memset(last->bytes + size % PAGE, 0, (size_t)(PAGE - size % PAGE));
    free_pages(file, (size_t)((size + PAGE - 1) / PAGE));
    file->size = size;
    file->floor = least(file->floor, size);
}

// Sets the size of the file on the disk to the visible size. It first removes truncated bytes, so that they are zero if
// the file grows again.
static int settle_size(struct unsynced_file *file, sqlite3_file *disk) {
    sqlite3_int64 found;
    int result = disk->pMethods->xFileSize(disk, &found);
    if (result == SQLITE_OK && found > file->floor) result = disk->pMethods->xTruncate(disk, file->floor);
    if (result == SQLITE_OK) result = disk->pMethods->xTruncate(disk, file->size);
    return result;
}

static int write_dirty_pages(struct unsynced_file *file, sqlite3_file *disk) {
    for (size_t i = 0; i < file->page_count; i++) {
        sqlite3_int64 at = (sqlite3_int64)i * PAGE;
        if (!file->pages[i] || !file->pages[i]->is_dirty) continue;
        int part = (int)least(PAGE, file->size - at);
        int result = disk->pMethods->xWrite(disk, file->pages[i]->bytes, part, at);
        if (result != SQLITE_OK) return result;
        free(file->pages[i]);
        file->pages[i] = NULL;
    }
    return SQLITE_OK;
}

// MARK: Methods

int unsynced_file_read(struct unsynced_file *file, sqlite3_file *disk, void *to, int count, sqlite3_int64 at) {
    pthread_mutex_lock(&lock);
    sqlite3_int64 there = least(file->size - at, count);
    if (there < 0) there = 0;
    memset((unsigned char *)to + there, 0, (size_t)(count - there));
    int result = read_pages(file, disk, to, there, at);
    if (result == SQLITE_OK && there < count) result = SQLITE_IOERR_SHORT_READ;
    pthread_mutex_unlock(&lock);
    return result;
}

int unsynced_file_write(
    struct unsynced_file *file, sqlite3_file *disk, const void *from, int count, sqlite3_int64 at
) {
    pthread_mutex_lock(&lock);
    int result = write_pages(file, disk, from, count, at);
    pthread_mutex_unlock(&lock);
    return result;
}

int unsynced_file_truncate(struct unsynced_file *file, sqlite3_file *disk, sqlite3_int64 size) {
    int result = SQLITE_OK;
    pthread_mutex_lock(&lock);
    if (leaks()) result = disk->pMethods->xTruncate(disk, size);
    truncate_pages(file, size);
    pthread_mutex_unlock(&lock);
    return result;
}

// Writes the unsynced content to the underlying file, but does not sync that file. The simulated power cut does not
// affect it.
int unsynced_file_sync(struct unsynced_file *file, sqlite3_file *disk) {
    pthread_mutex_lock(&lock);
    int result = settle_size(file, disk);
    if (result == SQLITE_OK) result = write_dirty_pages(file, disk);
    if (result == SQLITE_OK) file->floor = file->size;
    pthread_mutex_unlock(&lock);
    return result;
}

int unsynced_file_size(struct unsynced_file *file, sqlite3_int64 *size) {
    pthread_mutex_lock(&lock);
    *size = file->size;
    pthread_mutex_unlock(&lock);
    return SQLITE_OK;
}

void unsynced_file_lose(struct unsynced_file *file) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < file->page_count; i++) {
        if (file->pages[i]) file->pages[i]->is_dirty = 0;
    }
    pthread_mutex_unlock(&lock);
}
