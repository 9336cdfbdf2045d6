// What a program asked of SQLite, statement by statement with the values it bound: written by `record.c`, executed
// again by `replay.c`. An entry is a byte for its kind and what is told beside the kind below, in this machine's
// byte order.
#ifndef NETWATCH_FLOORS_RECORDING_H
#define NETWATCH_FLOORS_RECORDING_H

#include <dlfcn.h>
#include <stdint.h>

enum {
    // The SQL of a statement, which is numbered from 0 on: 4 bytes length, the text with its NUL.
    FLOORS_STATEMENT = 'S',
    // An execution: 4 bytes statement, 4 bytes number of values, the values. A value is a byte for its type
    // (SQLITE_INTEGER, …) and 8 bytes, or 4 bytes length and the bytes.
    FLOORS_EXECUTION = 'E',
    // The measured stretch begins or ends: 8 bytes, the operations it had, and 8 bytes, the rows that the
    // connection had changed by then.
    FLOORS_MARK = 'M',
};

// Where the recorder is told, in the process that it was preloaded into, that the measured stretch begins or ends.
#define FLOORS_MARKER "floors_recorder_mark"

// Tells the recorder, if there is one.
static inline void floors_mark(int64_t operations) {
    void (*mark)(int64_t) = (void (*)(int64_t))dlsym(RTLD_DEFAULT, FLOORS_MARKER);
    if (mark) mark(operations);
}

#endif
