#ifndef CNETWATCH_TOML_H
#define CNETWATCH_TOML_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What a call of the visitor reports.
enum netwatch_toml_kind {
    NETWATCH_TOML_STRING = 1,
    NETWATCH_TOML_INTEGER,
    NETWATCH_TOML_FLOAT,
    NETWATCH_TOML_BOOLEAN,
    /// A date or a time.
    NETWATCH_TOML_TIME,
    /// The beginning of an array or a table. Its elements follow, then NETWATCH_TOML_END.
    NETWATCH_TOML_ARRAY,
    NETWATCH_TOML_TABLE,
    NETWATCH_TOML_END,
};

/// A value, or the beginning or end of a container. Pointers are valid only during the call.
struct netwatch_toml_event {
    enum netwatch_toml_kind kind;
    /// The key in the enclosing table; NULL in an array and for the root table.
    const char *key;
    size_t key_length;
    /// The content of a string. May contain NULs.
    const char *text;
    size_t text_length;
    int64_t integer;
    double number;
    /// Where the key is, or the value if it has none. The first line and the first column are 1.
    uint32_t line;
    uint32_t column;
};

typedef void (*netwatch_toml_visitor)(void *context, const struct netwatch_toml_event *event);

/// Called at most once, for a document that is not valid TOML.
typedef void (*netwatch_toml_failure)(void *context, const char *message, uint32_t line, uint32_t column);

/// Parses a document and calls the visitor for each part of it. The order of the keys of a table is not that of the
/// document. Does not call the visitor if the document is not valid.
void netwatch_toml_read(
    const char *document, size_t length, void *context, netwatch_toml_visitor visit, netwatch_toml_failure fail);

#ifdef __cplusplus
}
#endif

#endif
