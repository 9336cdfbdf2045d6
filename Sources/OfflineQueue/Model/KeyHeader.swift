/// The idempotency key of a request, with the name of its header field.
package struct KeyHeader: Hashable, Sendable {
    package let name: String
    package let value: String
    /// Whether the value is sent in quotes.
    package let isQuoted: Bool

    package init(name: String, value: String, isQuoted: Bool) {
        self.name = name
        self.value = value
        self.isQuoted = isQuoted
    }

    package var header: QueueRequest.Header {
        QueueRequest.Header(name: name, value: isQuoted ? "\"\(value)\"" : value)
    }
}
