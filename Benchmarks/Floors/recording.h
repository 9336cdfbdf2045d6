// The format of a recording: the SQLite statements of a program with their bound values. `record.c` writes a recording,
// and `replay.c` executes it. An entry is one byte for its kind, followed by the data described below, in this
// machine's byte order.
#ifndef NETWATCH_FLOORS_RECORDING_H
#define NETWATCH_FLOORS_RECORDING_H

#include <dlfcn.h>
#include <stdint.h>

enum {
    // The SQL of a statement, before its first execution. Statements are numbered from 0, in this order.
    //     4 bytes    the length of the text with its NUL
    //     …          the text with its NUL
    FLOORS_STATEMENT = 'S',
    // An execution of a statement.
    //     4 bytes    the number of the statement
    //     4 bytes    the number of values
    //     …          the values
    // A value is one byte for its type (SQLITE_INTEGER, …), followed by nothing for NULL, by 8 bytes for a number, or
    // by 4 bytes for the length of a text or blob and its bytes.
    FLOORS_EXECUTION = 'E',
    // The start or the end of the measured part.
    //     8 bytes    the number of operations of the measured part; 0 at the start
    //     8 bytes    the number of rows that the connection has changed so far
    FLOORS_MARK = 'M',
};

// The name of the recorder's function that the program must call at the start and the end of the measured part.
#define FLOORS_MARKER "floors_recorder_mark"

// Calls that function, if the recorder is preloaded.
static inline void floors_mark(int64_t operations) {
    void (*mark)(int64_t) = (void (*)(int64_t))dlsym(RTLD_DEFAULT, FLOORS_MARKER);
    if (mark) mark(operations);
}

#endif
