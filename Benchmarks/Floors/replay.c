// The floor of the queue's store. Executes the recorded statements of the store again, with the same values, through
// SQLite's C interface, in one thread. Prepares each statement once. The recording comes from a run of the benchmark
// (`record.c`), so the statements, the schema and the settings are the same.
//
// Usage: replay RECORDING SECONDS GROUP DIRECTORY
//     SECONDS      the maximum duration of the measured part
//     GROUP        the number of recorded transactions to merge into one
//     DIRECTORY    contains the database in its state when the recorded program opened it
#include "figures.h"
#include "recording.h"
#include "syncs.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { MOST_STATEMENTS = 1024 };

typedef struct {
    const char *sql;
    sqlite3_stmt *prepared;
    int begins, commits;
} statement;

static sqlite3 *database;
static const uint8_t *place;
static statement statements[MOST_STATEMENTS];
static int64_t operations, expected_changes;

static void check(int result, const char *what) {
    if (result == SQLITE_OK || result == SQLITE_DONE) return;
    fprintf(stderr, "%s: %s\n", what, sqlite3_errmsg(database));
    exit(1);
}

static uint32_t number(void) {
    uint32_t value;
    memcpy(&value, place, sizeof value);
    place += sizeof value;
    return value;
}

static int64_t integer(void) {
    int64_t value;
    memcpy(&value, place, sizeof value);
    place += sizeof value;
    return value;
}

static void read_statement(void) {
    static uint32_t count;
    uint32_t length = number();
    const char *sql = (const char *)place;
    statements[count++] = (statement){
        .sql = sql,
        .begins = strncasecmp(sql, "BEGIN", 5) == 0,
        .commits = strncasecmp(sql, "COMMIT", 6) == 0,
    };
    place += length;
}

static void prepare(statement *it) {
    if (it->prepared) return;
    check(sqlite3_prepare_v3(database, it->sql, -1, SQLITE_PREPARE_PERSISTENT, &it->prepared, NULL), it->sql);
}

// Reads the value at `place`. Binds it if `prepared` is not NULL.
static void read_value(sqlite3_stmt *prepared, int index) {
    int type = *place++;
    if (type == SQLITE_NULL) {
        if (prepared) sqlite3_bind_null(prepared, index);
    } else if (type == SQLITE_INTEGER) {
        int64_t value = integer();
        if (prepared) sqlite3_bind_int64(prepared, index, value);
    } else if (type == SQLITE_FLOAT) {
        double value;
        memcpy(&value, place, sizeof value);
        place += sizeof value;
        if (prepared) sqlite3_bind_double(prepared, index, value);
    } else {
        uint32_t length = number();
        const char *bytes = (const char *)place;
        place += length;
        if (prepared && type == SQLITE_TEXT) sqlite3_bind_text(prepared, index, bytes, length, SQLITE_STATIC);
        if (prepared && type == SQLITE_BLOB) sqlite3_bind_blob(prepared, index, bytes, length, SQLITE_STATIC);
    }
}

// Reads all columns of a row, as the store does.
static void read_row(sqlite3_stmt *prepared) {
    for (int i = 0; i < sqlite3_column_count(prepared); i++) {
        switch (sqlite3_column_type(prepared, i)) {
        case SQLITE_INTEGER: sqlite3_column_int64(prepared, i); break;
        case SQLITE_FLOAT: sqlite3_column_double(prepared, i); break;
        case SQLITE_NULL: break;
        default: sqlite3_column_blob(prepared, i), sqlite3_column_bytes(prepared, i);
        }
    }
}

static void execute(statement *it) {
    int result;
    while ((result = sqlite3_step(it->prepared)) == SQLITE_ROW) read_row(it->prepared);
    check(result, it->sql);
    sqlite3_reset(it->prepared);
}

// Reads an execution and returns its statement. If `binds` is not 0, also prepares the statement and binds the values.
static statement *read_execution(int binds) {
    statement *it = &statements[number()];
    if (binds) prepare(it);
    uint32_t count = number();
    for (uint32_t i = 0; i < count; i++) read_value(binds ? it->prepared : NULL, i + 1);
    return it;
}

static void read_mark(void) {
    operations = integer();
    expected_changes = integer();
}

// Executes the recording up to the measured part: the settings and the statements that open the store.
static void open_as_recorded(void) {
    for (int kind; (kind = *place++) != FLOORS_MARK;) {
        if (kind == FLOORS_STATEMENT) read_statement();
        else execute(read_execution(1));
    }
    read_mark();
}

// Prepares the statements of the measured part, without executing them. Returns the number of its transactions.
static int prepare_stretch(void) {
    const uint8_t *start = place;
    int transactions = 0;
    for (int kind; (kind = *place++) != FLOORS_MARK;) {
        if (kind == FLOORS_STATEMENT) {
            read_statement();
        } else {
            statement *it = read_execution(0);
            prepare(it);
            transactions += it->commits;
        }
    }
    read_mark();
    place = start;
    return transactions;
}

// Executes the measured part until its end or a given time. Returns the number of executed transactions, and stores the
// latency of each in `latencies`.
static int run(int64_t end, int group, int64_t *latencies) {
    int count = 0, waiting = 0;
    int64_t start = floors_now(CLOCK_MONOTONIC);
    for (int kind; (kind = *place++) != FLOORS_MARK;) {
        if (kind == FLOORS_STATEMENT) {
            place += number();
            continue;
        }
        statement *it = read_execution(1);
        if (it->begins && waiting++ > 0) continue;
        if (it->commits && waiting < group) continue;
        execute(it);
        if (!it->commits) continue;
        int64_t now = floors_now(CLOCK_MONOTONIC);
        for (; waiting > 0; waiting--) latencies[count++] = now - start;
        start = now;
        if (now >= end) break;
    }
    // The last group may have fewer transactions than `group`.
    if (waiting > 0) check(sqlite3_exec(database, "COMMIT", 0, 0, 0), "COMMIT");
    for (; waiting > 0; waiting--) latencies[count++] = floors_now(CLOCK_MONOTONIC) - start;
    return count;
}

static void map(const char *path) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) < 0) floors_fail(path);
    place = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (place == MAP_FAILED) floors_fail(path);
    close(file);
}

int main(int argc, char **argv) {
    if (argc != 5 || chdir(argv[4]) != 0) return 2;
    map(argv[1]);
    check(sqlite3_open_v2("queue.sqlite", &database, SQLITE_OPEN_READWRITE, NULL), "queue.sqlite");
    open_as_recorded();
    int transactions = prepare_stretch();
    int64_t *latencies = calloc(transactions + 1, sizeof *latencies);
    int64_t syncs = floors_syncs(), start = floors_now(CLOCK_MONOTONIC);
    double used = floors_processor_seconds();
    int done = run(start + (int64_t)(atof(argv[2]) * 1e9), atoi(argv[3]), latencies);
    double seconds = (floors_now(CLOCK_MONOTONIC) - start) / 1e9;
    double executed = (double)operations * done / transactions;
    printf("rate %.1f\ncpu %.3f\n", executed / seconds, (floors_processor_seconds() - used) / executed * 1e6);
    if (syncs >= 0) printf("syncs %.5f\n", (floors_syncs() - syncs) / executed);
    floors_report("", latencies, done);
    if (done == transactions && sqlite3_total_changes64(database) != expected_changes) {
        fputs("the replayed statements changed another number of rows than the recorded ones\n", stderr);
        return 1;
    }
    return 0;
}
