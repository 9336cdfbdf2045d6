// A library to preload into a program (LD_PRELOAD). Records the program's SQLite statements, so that `replay.c` can
// execute the same ones. Does nothing without this environment variable:
//
// FLOORS_RECORDING    the file to write
#define _GNU_SOURCE
#include "figures.h"
#include "recording.h"

#include <ctype.h>
#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

enum { MOST_STATEMENTS = 1024, MOST_RUNNING = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *recording;
static sqlite3 *connection;
static char *statements[MOST_STATEMENTS];
static void *running[MOST_RUNNING];

typedef struct {
    int type;
    int64_t integer;
    double real;
    char *bytes;
    uint32_t length;
} value;

static void put(const void *bytes, size_t count) {
    if (fwrite(bytes, 1, count, recording) != count) floors_fail("recording");
}

static void put_number(uint32_t number) { put(&number, sizeof number); }

// Returns the number of a statement. If the statement is new, writes it to the recording.
static uint32_t number_of(const char *sql) {
    uint32_t number = 0;
    while (number < MOST_STATEMENTS && statements[number] && strcmp(statements[number], sql)) number++;
    if (number == MOST_STATEMENTS) floors_fail("too many different statements");
    if (!statements[number]) {
        statements[number] = strdup(sql);
        fputc(FLOORS_STATEMENT, recording);
        put_number(strlen(sql) + 1);
        put(sql, strlen(sql) + 1);
    }
    return number;
}

// Returns the end of the string, quoted name or comment that begins at `sql`. If none begins there, returns `sql`.
static const char *end_of_opaque(const char *sql) {
    if (strchr("'\"`", *sql)) {
        const char *end = strchr(sql + 1, *sql);
        return end ? end + 1 : sql + strlen(sql);
    }
    if (strncmp(sql, "--", 2) == 0) return sql + strcspn(sql, "\n");
    return sql;
}

static int digit(char character) { return isdigit(character) ? character - '0' : character - 'a' + 10; }

// Parses a literal in the format of sqlite3_expanded_sql(). Returns its end.
static const char *parse(const char *text, value *value) {
    char *end = NULL;
    uint32_t length = 0;
    if (strncmp(text, "NULL", 4) == 0) {
        value->type = SQLITE_NULL;
        return text + 4;
    }
    if (text[0] == 'x' && text[1] == '\'') {
        length = strcspn(text + 2, "'") / 2;
        value->type = SQLITE_BLOB, value->bytes = malloc(length + 1), value->length = length;
        for (uint32_t i = 0; i < length; i++)
            value->bytes[i] = digit(text[2 + 2 * i]) << 4 | digit(text[3 + 2 * i]);
        return text + 3 + 2 * length;
    }
    if (text[0] == '\'') {
        value->type = SQLITE_TEXT, value->bytes = malloc(strlen(text));
        for (text++; *text != '\'' || *++text == '\''; text++) value->bytes[length++] = *text;
        value->length = length;
        return text;
    }
    value->integer = strtoll(text, &end, 10);
    value->type = strchr(".eE", *end) && *end ? SQLITE_FLOAT : SQLITE_INTEGER;
    if (value->type == SQLITE_FLOAT) value->real = strtod(text, &end);
    return end;
}

static void put_value(const value *value) {
    fputc(value->type, recording);
    if (value->type == SQLITE_INTEGER) put(&value->integer, sizeof value->integer);
    if (value->type == SQLITE_FLOAT) put(&value->real, sizeof value->real);
    if (value->type != SQLITE_TEXT && value->type != SQLITE_BLOB) return;
    put_number(value->length);
    put(value->bytes, value->length);
}

// Returns the length of the parameter, such as `?` or `:name`, that begins at `sql`, and sets `number` to its number.
// If none begins there, returns 0.
static size_t parameter(sqlite3_stmt *statement, const char *sql, int *number) {
    size_t length = 1;
    if (*sql == '?' && !isdigit(sql[1])) return ++*number, length;
    if (!strchr("?:@$", *sql) || !(isalnum(sql[1]) || sql[1] == '_')) return 0;
    while (isalnum(sql[length]) || sql[length] == '_') length++;
    char *name = strndup(sql, length);
    *number = sqlite3_bind_parameter_index(statement, name);
    free(name);
    return length;
}

// Finds the bound values of a statement. Compares its text with the text in which SQLite has replaced the parameters by
// their values.
static void find_values(sqlite3_stmt *statement, const char *sql, const char *expanded, value *values) {
    int number = 0;
    while (*sql && *sql == *expanded || strchr("?:@$", *sql) && *sql) {
        size_t length = parameter(statement, sql, &number);
        const char *end = length ? sql + length : end_of_opaque(sql);
        if (end == sql) end++;
        expanded = length ? parse(expanded, &values[number - 1]) : expanded + (end - sql);
        sql = end;
    }
    if (*sql || *expanded) {
        fprintf(stderr, "cannot find the bound values in: %s\n", expanded);
        exit(1);
    }
}

// Writes an execution of a statement with its values to the recording.
static void record(sqlite3_stmt *statement, const char *expanded) {
    int count = sqlite3_bind_parameter_count(statement);
    value values[count + 1];
    memset(values, 0, sizeof values);
    find_values(statement, sqlite3_sql(statement), expanded, values);
    uint32_t number = number_of(sqlite3_sql(statement));
    fputc(FLOORS_EXECUTION, recording);
    put_number(number);
    put_number(count);
    for (int i = 0; i < count; i++) {
        put_value(&values[i]);
        free(values[i].bytes);
    }
}

// Returns whether a statement starts, and remembers it as running. SQLite also reports a start for each foreign key
// action of a running statement. For these, returns 0.
static int begins(void *statement) {
    void **free_place = NULL;
    for (int i = 0; i < MOST_RUNNING; i++) {
        if (running[i] == statement) return 0;
        if (!running[i]) free_place = &running[i];
    }
    if (!free_place) floors_fail("too many statements at once");
    *free_place = statement;
    return 1;
}

static void end(void *statement) {
    for (int i = 0; i < MOST_RUNNING; i++)
        if (running[i] == statement) running[i] = NULL;
}

static int on_trace(unsigned kind, void *context, void *statement, void *text) {
    (void)context;
    if (kind == SQLITE_TRACE_PROFILE) return end(statement), 0;
    // SQLite reports a statement of a trigger as a comment (`--`). It is not recorded, because replaying the statement
    // that fires the trigger executes it again.
    if (strncmp(text, "--", 2) == 0 || !begins(statement)) return 0;
    char *expanded = sqlite3_expanded_sql(statement);
    pthread_mutex_lock(&lock);
    record(statement, expanded);
    pthread_mutex_unlock(&lock);
    sqlite3_free(expanded);
    return 0;
}

static int on_open(sqlite3 *opened, char **message, const void *routines) {
    (void)message, (void)routines;
    // Read-only connections are not recorded. The queue uses one to inspect a database before it opens it.
    if (sqlite3_db_readonly(opened, "main") == 1) return SQLITE_OK;
    if (connection) {
        fputs("cannot record: the program opened a second writable database connection\n", stderr);
        exit(1);
    }
    connection = opened;
    return sqlite3_trace_v2(opened, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, on_trace, NULL);
}

// Writes a mark to the recording: the start or end of the measured part.
void floors_recorder_mark(int64_t operations) {
    int64_t changes = sqlite3_total_changes64(connection);
    pthread_mutex_lock(&lock);
    fputc(FLOORS_MARK, recording);
    put(&operations, sizeof operations);
    put(&changes, sizeof changes);
    fflush(recording);
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void floors_begin_recording(void) {
    const char *path = getenv("FLOORS_RECORDING");
    if (!path) return;
    recording = fopen(path, "we");
    if (!recording) floors_fail(path);
    sqlite3_auto_extension((void (*)(void))on_open);
}
