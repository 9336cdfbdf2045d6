internal import Foundation
internal import NetwatchTransport

extension Expectation {
    /// A property of the response by which the real server is recognized.
    ///
    /// A captive portal, a proxy or another server may respond with an expected status and type, but it does not know
    /// the rule. See ``Expectation/rules``.
    public enum Rule: Hashable, Sendable {
        /// The response has this header field, with this value if one is given.
        ///
        /// Names are compared without case. Values are compared with case, as a whole, without the spaces around them.
        case header(String, value: String? = nil)
        /// The body begins with this text, as UTF-8: 1 to 1024 bytes.
        case bodyPrefix(String)
        /// The body is a JSON document with this member, and with this value if one is given.
        ///
        /// The member is a JSON pointer (RFC 6901), such as `/data/0/id`, or names separated by dots, such as
        /// `data.0.id`. The value is a number, `true`, `false`, `null` or a string in quotes. Any other text is a
        /// string, too. A document of more than 1 MiB does not meet the rule.
        case jsonMember(String, value: String? = nil)
    }
}

extension Expectation.Rule: CustomStringConvertible {
    /// The rule as text, which ``Expectation/init(parsing:)`` accepts.
    public var description: String {
        switch self {
        case .header(let name, let value): Self.text("header", name, value)
        case .bodyPrefix(let prefix): "body=\(EscapedText.escape(prefix, [","]))"
        case .jsonMember(let path, let value): Self.text("json", path, value)
        }
    }

    private static func text(_ kind: String, _ name: String, _ value: String?) -> String {
        let value = value.map { "=" + EscapedText.escapeWhole($0, [","]) } ?? ""
        return "\(kind)=\(EscapedText.escapeWhole(name, [",", "="]))\(value)"
    }

    /// Parses the part after `header=`, `body=` or `json=`.
    ///
    /// - Returns: `nil` if there is no such kind of rule.
    init?(_ kind: String, _ text: EscapedText) {
        let parts = text.split(at: "=", maximum: 1)
        let name = parts[0].trimmed.text
        let value = parts.count > 1 ? parts[1].trimmed.text : nil
        switch kind {
        case "header": self = .header(name, value: value)
        // Spaces are part of the prefix.
        case "body": self = .bodyPrefix(text.text)
        case "json": self = .jsonMember(name, value: value)
        default: return nil
        }
    }
}

// MARK: - Evaluation

extension Expectation.Rule {
    /// Returns whether a response meets the rule.
    func isMet(by response: ReceivedResponse) -> Bool {
        switch self {
        case .header(let name, let expected):
            let values = response.values(of: name.lowercased())
            guard let expected else { return !values.isEmpty }
            return values.contains { $0.trimmingCharacters(in: .whitespaces) == expected }
        case .bodyPrefix(let prefix): return response.body.starts(with: prefix.utf8)
        case .jsonMember(let path, let expected):
            guard let path = JSONPath(path), let member = JSONMember.find(path, in: response.body)
            else { return false }
            return expected.map { member.value == .init(parsing: $0) } ?? member.exists
        }
    }

    /// The number of bytes of the body that must be received to evaluate the rule.
    var bodyBytes: Int {
        switch self {
        case .header: 0
        case .bodyPrefix(let prefix): prefix.utf8.count
        case .jsonMember: Self.maximumDocumentBytes
        }
    }

    /// The maximum size of a JSON document that can meet a rule: 1 MiB. With 32 requests in flight, at most 32 MiB of
    /// responses are in memory.
    private static let maximumDocumentBytes = 1 << 20
}

// MARK: - Validation

extension Expectation.Rule {
    /// The maximum size of a rule's text in bytes. All rules of a request are read with the request for each attempt.
    private static let maximumBytes = 1024

    func check() throws(QueueError) {
        guard description.utf8.count <= Self.maximumBytes + 16, !description.utf8.contains(0) else {
            throw refusal("must have at most \(Self.maximumBytes) bytes and no NUL")
        }
        switch self {
        case .header(let name, let value): try Self.checkHeader(name, value)
        case .bodyPrefix(let prefix):
            if prefix.isEmpty { throw refusal("needs a text after `body=`") }
        case .jsonMember(let path, _):
            guard JSONPath(path) == nil else { return }
            throw QueueError(
                .invalidOption,
                "\(quoted(path)) is neither a JSON pointer such as `/data/id` nor a dotted path such as `data.id`"
            )
        }
    }

    private static func checkHeader(_ name: String, _ value: String?) throws(QueueError) {
        guard HTTPToken.isValid(name) else {
            throw QueueError(.invalidOption, "\(quoted(name)) is not the name of a header field")
        }
        if let value, let fault = HTTPFieldValue.fault(of: value, in: name) {
            throw QueueError(.invalidOption, fault)
        }
    }

    private func refusal(_ words: String) -> QueueError {
        QueueError(.invalidOption, "the rule \(quoted(description)) \(words)")
    }
}
