internal import Foundation
internal import NetwatchTransport

/// The responses that count as a successful delivery of a request.
///
/// ```swift
/// var options = EnqueueOptions()
/// options.expectation = Expectation(statuses: [200...204], contentType: "application/json")
/// ```
public struct Expectation: Hashable, Sendable {
    /// The statuses that count as success: 1 to 32 ranges within 200 to 599. Default 200 to 299.
    public var statuses: [ClosedRange<Int>]
    /// The media type that the response must have, such as `application/json` or `image/*`. Default `nil`: any type,
    /// or none. Parameters of the response's type, such as `charset`, are ignored.
    public var contentType: String?
    /// The properties by which the real server is recognized, all of which the response must have: at most 16. Default
    /// none.
    ///
    /// Over plain HTTP, a response that does not meet a rule is treated as a captive portal's, whatever its status is:
    /// it neither delivers the request nor ends it. Over HTTPS the server has proven its identity, so such a response
    /// is the server's own, and it does not deliver the request.
    public var rules: [Rule]

    /// Creates an expectation.
    public init(
        statuses: [ClosedRange<Int>] = [200...299],
        contentType: String? = nil,
        rules: [Rule] = []
    ) {
        self.statuses = statuses
        self.contentType = contentType
        self.rules = rules
    }

    /// Any 2xx status.
    public static let success = Expectation()
}

// MARK: - Text form

extension Expectation: CustomStringConvertible {
    /// A description of the text that ``init(parsing:)`` accepts, for error messages.
    public static let acceptedForm =
        "`status=`, `type=`, `header=`, `body=` and `json=`, separated by commas, like `status=2xx`, "
        + "`status=200-204,status=404`, `status=2xx,type=application/json`, `header=Server=nginx`, `body=OK` or "
        + "`json=/status=ok`"

    /// Parses a comma-separated list, such as `status=2xx,type=application/json,header=X-Server`.
    ///
    /// | part | meaning |
    /// |---|---|
    /// | `status=…` | a status (`201`), a range (`200-204`) or a class (`2xx`). May occur several times. Default: `2xx` |
    /// | `type=…` | ``contentType``. May occur once |
    /// | `header=NAME`, `header=NAME=VALUE` | ``Rule/header(_:value:)`` |
    /// | `body=PREFIX` | ``Rule/bodyPrefix(_:)`` |
    /// | `json=MEMBER`, `json=MEMBER=VALUE` | ``Rule/jsonMember(_:value:)`` |
    ///
    /// A backslash makes the next character an ordinary one: `\,` for a comma in a value, `\=` for an equals sign in a
    /// name, `\\` for a backslash. Spaces around a name or a value are ignored, unless a backslash precedes them.
    ///
    /// - Throws: ``QueueError`` with `invalidOption` and a message that quotes the text and the invalid part.
    public init(parsing text: String) throws(QueueError) {
        guard let whole = EscapedText(text) else { throw Self.unreadable(text) }
        self.init(statuses: [])
        for part in whole.split(at: ",") {
            let pair = part.split(at: "=", maximum: 1)
            guard !isSecondType(pair) else {
                let message = "`type=` occurs twice in \(quoted(text)); accepted: one content type"
                throw QueueError(.invalidOption, message)
            }
            guard add(pair) else { throw Self.unreadable(part.text, of: text) }
        }
        if statuses.isEmpty { statuses = [200...299] }
        try check()
    }

    private func isSecondType(_ pair: [EscapedText]) -> Bool {
        contentType != nil && pair.count == 2 && pair[0].text.trimmingCharacters(in: .whitespaces) == "type"
    }

    /// Adds a part of the text form. Returns whether it is valid.
    private mutating func add(_ pair: [EscapedText]) -> Bool {
        guard pair.count == 2 else { return false }
        let value = pair[1].text.trimmingCharacters(in: .whitespaces)
        switch pair[0].text.trimmingCharacters(in: .whitespaces) {
        case "status":
            guard let range = StatusRanges.range(value) else { return false }
            statuses.append(range)
        case "type":
            contentType = value
        case let kind:
            guard let rule = Rule(kind, pair[1]) else { return false }
            rules.append(rule)
        }
        return true
    }

    /// The expectation as text, which ``init(parsing:)`` accepts.
    public var description: String {
        let parts = statuses.map { "status=\(StatusRanges.text($0))" }
        let type = contentType.map { ["type=\($0)"] } ?? []
        return (parts + type + rules.map(\.description)).joined(separator: ",")
    }

    /// Returns the error for an invalid part. The part may be the rest of a value that contains a comma.
    private static func unreadable(_ part: String, of text: String) -> QueueError {
        guard part != text else { return unreadable(text) }
        let name = part.isEmpty ? "an empty part" : "the part \(quoted(part))"
        return QueueError(
            .invalidOption,
            "\(name) of \(quoted(text)) is not an expectation; accepted: \(acceptedForm); "
                + "write a comma in a value as `\\,`"
        )
    }

    private static func unreadable(_ text: String) -> QueueError {
        QueueError(.invalidOption, "\(quoted(text)) is not an expectation; accepted: \(acceptedForm)")
    }
}

// MARK: - Validation

extension Expectation {
    func check() throws(QueueError) {
        guard !statuses.isEmpty, statuses.count <= 32, statuses.allSatisfy({ (200...599).contains($0) })
        else {
            throw QueueError(
                .invalidOption,
                "the expectation \(quoted(description)) must have 1 to 32 status ranges within 200 to 599"
            )
        }
        guard rules.count <= 16 else {
            throw QueueError(
                .invalidOption,
                "the expectation has \(rules.count) rules; at most 16 are accepted"
            )
        }
        for rule in rules { try rule.check() }
        if let contentType, !Self.isMediaType(contentType) {
            throw QueueError(
                .invalidOption,
                "\(quoted(contentType)) is not a media type such as application/json or image/*"
            )
        }
    }

    private static func isMediaType(_ text: String) -> Bool {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        return text.utf8.count <= 255 && parts.count == 2
            && parts.allSatisfy { HTTPToken.isValid(String($0)) }
    }

}

// MARK: - Evaluation

extension Expectation {
    /// Returns whether a response meets the expectation.
    package func isMet(by response: ReceivedResponse) -> Bool {
        statuses.contains { $0.contains(response.status) } && isType(response.value(of: "content-type"))
            && unmetRule(in: response) == nil
    }

    /// Returns why a response does not meet the expectation, as the end of a sentence that begins with its status.
    /// Returns `nil` if it meets the expectation.
    package func mismatch(with response: ReceivedResponse) -> String? {
        if let mismatch = ruleMismatch(with: response) { return mismatch }
        guard statuses.contains(where: { $0.contains(response.status) }) else { return "expected \(self)" }
        let type = response.value(of: "content-type")
        guard let contentType, !isType(type) else { return nil }
        let shown = type.map { quoted(response.redactor.text($0)) } ?? "missing"
        return "the content type is \(shown), expected \(quoted(contentType))"
    }

    /// Returns a text that names the first rule that a response does not meet; `nil` if it meets all of them.
    func ruleMismatch(with response: ReceivedResponse) -> String? {
        unmetRule(in: response).map { "the response does not meet the rule \(quoted($0.description))" }
    }

    /// Returns the first rule that a response does not meet; `nil` if it meets all of them.
    func unmetRule(in response: ReceivedResponse) -> Rule? { rules.first { !$0.isMet(by: response) } }

    /// The number of bytes of the body that must be received to evaluate the expectation.
    package var bodyBytes: Int { rules.map(\.bodyBytes).max() ?? 0 }

    /// Returns whether the media type of a response is the expected one.
    package func isType(_ found: String?) -> Bool {
        guard let contentType = contentType?.lowercased() else { return true }
        let found = (found ?? "").prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        if contentType == "*/*" { return !found.isEmpty }
        if contentType.hasSuffix("/*") { return found.hasPrefix(contentType.dropLast()) }
        return found == contentType
    }
}

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
