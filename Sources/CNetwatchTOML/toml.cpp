#include "CNetwatchTOML.h"

#include <string_view>
#include <toml++/toml.h>

namespace {

struct Reader {
    void *context;
    netwatch_toml_visitor visit;

    void emit(netwatch_toml_event event, const toml::key *key, const toml::node &node) const {
        const toml::source_position &position = key ? key->source().begin : node.source().begin;
        event.line = position.line;
        event.column = position.column;
        if (key) {
            event.key = key->data();
            event.key_length = key->length();
        }
        visit(context, &event);
    }

    void end() const {
        netwatch_toml_event event{};
        event.kind = NETWATCH_TOML_END;
        visit(context, &event);
    }

    // toml++ limits the nesting (TOML_MAX_NESTED_VALUES), so that the recursion is bounded.
    void read(const toml::node &node, const toml::key *key) const {
        netwatch_toml_event event{};
        if (const toml::table *table = node.as_table()) {
            event.kind = NETWATCH_TOML_TABLE;
            emit(event, key, node);
            for (const auto &[name, child] : *table) read(child, &name);
            end();
        } else if (const toml::array *array = node.as_array()) {
            event.kind = NETWATCH_TOML_ARRAY;
            emit(event, key, node);
            for (const toml::node &child : *array) read(child, nullptr);
            end();
        } else {
            readValue(node, key, event);
        }
    }

    void readValue(const toml::node &node, const toml::key *key, netwatch_toml_event event) const {
        if (const auto *text = node.as_string()) {
            event.kind = NETWATCH_TOML_STRING;
            event.text = text->get().data();
            event.text_length = text->get().size();
        } else if (const auto *integer = node.as_integer()) {
            event.kind = NETWATCH_TOML_INTEGER;
            event.integer = integer->get();
        } else if (const auto *number = node.as_floating_point()) {
            event.kind = NETWATCH_TOML_FLOAT;
            event.number = number->get();
        } else if (const auto *boolean = node.as_boolean()) {
            event.kind = NETWATCH_TOML_BOOLEAN;
            event.integer = boolean->get();
        } else {
            event.kind = NETWATCH_TOML_TIME;
        }
        emit(event, key, node);
    }
};

} // namespace

void netwatch_toml_read(
    const char *document, size_t length, void *context, netwatch_toml_visitor visit, netwatch_toml_failure fail) {
    // No C++ exception may reach Swift.
    try {
        const toml::table table = toml::parse(std::string_view(document, length));
        Reader{context, visit}.read(table, nullptr);
    } catch (const toml::parse_error &error) {
        fail(context, error.what(), error.source().begin.line, error.source().begin.column);
    } catch (const std::exception &error) {
        fail(context, error.what(), 0, 0);
    }
}
