// The recording of a program's SQLite statements with their bound values. `record.c` writes it, and `replay.c` executes
// it. An entry is one byte for its kind, followed by the data described below, in this machine's byte order.
#ifndef NETWATCH_FLOORS_RECORDING_H
#define NETWATCH_FLOORS_RECORDING_H

#include <dlfcn.h>
#include <stdint.h>

enum {
    // The SQL of a statement: 4 bytes length, the text with its NUL. Statements are numbered from 0.
    FLOORS_STATEMENT = 'S',
    // An execution: 4 bytes statement number, 4 bytes number of values, the values. A value is one byte for its type
    // (SQLITE_INTEGER, …) and 8 bytes, or 4 bytes length and the bytes.
    FLOORS_EXECUTION = 'E',
    // The start or end of the measured part: 8 bytes number of operations, 8 bytes number of rows that the connection
    // has changed so far.
    FLOORS_MARK = 'M',
};

// The function of the preloaded recorder that must be called at the start and end of the measured part.
#define FLOORS_MARKER "floors_recorder_mark"

// Notifies the recorder, if there is one.
static inline void floors_mark(int64_t operations) {
    void (*mark)(int64_t) = (void (*)(int64_t))dlsym(RTLD_DEFAULT, FLOORS_MARKER);
    if (mark) mark(operations);
}

#endif
