/// The idempotency key of a request and its header form.
package struct KeyHeader: Hashable, Sendable {
    package let name: String
    package let value: String
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
