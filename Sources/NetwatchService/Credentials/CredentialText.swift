internal import ClientCore
internal import Foundation
internal import OfflineQueue

/// The text of a credential file. Each line is `key: value`, a comment that begins with `#`, or empty.
///
/// Messages about a text never quote its values, because any of them may be a secret in the wrong place.
struct CredentialText {
    /// The keys of a file, in the order of the documentation.
    private enum Key: String, CaseIterable {
        case type, origins, name, user, value, certificate, key
    }

    private enum Kind: String, CaseIterable {
        case bearer, basic, header, query, certificate

        /// The keys that a credential of this kind requires, in addition to `type` and `origins`.
        var ownKeys: [Key] {
            switch self {
            case .bearer: [.value]
            case .basic: [.user, .value]
            case .header, .query: [.name, .value]
            case .certificate: [.certificate, .key]
            }
        }
    }

    /// What the credential consists of.
    enum Content {
        case value(CredentialValue)
        /// The paths of a client's certificate and its key, as they are written.
        case files(certificate: String, key: String)
    }

    /// An error in a text.
    struct Fault: Error, Hashable {
        /// The number of the line; `nil` if the error concerns the whole text.
        let line: Int?
        let message: String
    }

    let content: Content
    let origins: [String]

    /// Parses a text.
    ///
    /// - Throws: ``Fault``.
    init(parsing text: String) throws(Fault) {
        let fields = try Self.fields(of: text)
        guard !fields.isEmpty else { throw Fault(line: nil, message: "the file has no `key: value` lines") }
        let kind = try Self.kind(Self.required(.type, in: fields))
        for key in Key.allCases where !([.type, .origins] + kind.ownKeys).contains(key) {
            guard let field = fields[key] else { continue }
            throw Fault(line: field.line, message: "`\(key)` is not accepted for the type `\(kind)`")
        }
        var own: [Key: Field] = [:]
        for key in kind.ownKeys { own[key] = try Self.required(key, in: fields) }
        let origins = try Self.required(.origins, in: fields)
        self.origins = origins.text.split(whereSeparator: \.isWhitespace).map(String.init)
        try Self.check(self.origins, of: kind, line: origins.line)
        content = try Self.content(kind, own)
    }

    private static func check(_ origins: [String], of kind: Kind, line: Int) throws(Fault) {
        for (number, text) in zip(1..., origins) {
            guard (try? OriginPattern(text)) != nil else {
                let message =
                    "the value \(number) of `origins` is not an origin; \(OriginPattern.advice(insteadOf: text))"
                throw Fault(line: line, message: message)
            }
            guard kind != .certificate || text.lowercased().hasPrefix("https:") else {
                let message =
                    "the value \(number) of `origins` must begin with `https://`: a client certificate is sent only "
                    + "over TLS"
                throw Fault(line: line, message: message)
            }
        }
    }

    private static func content(_ kind: Kind, _ fields: [Key: Field]) throws(Fault) -> Content {
        func text(_ key: Key) -> String { fields[key]?.text ?? "" }
        let value: CredentialValue
        switch kind {
        case .bearer: value = .bearer(text(.value))
        case .basic: value = .basic(user: text(.user), password: text(.value))
        case .header: value = .header(name: text(.name), value: text(.value))
        case .query: value = .queryItem(name: text(.name), value: text(.value))
        case .certificate: return .files(certificate: text(.certificate), key: text(.key))
        }
        try checkPlace(of: value, fields)
        if let fault = value.fault { throw Fault(line: fields[.value]?.line, message: fault) }
        return .value(value)
    }

    /// Refuses a user name or a name that cannot be sent, without quoting it.
    private static func checkPlace(of value: CredentialValue, _ fields: [Key: Field]) throws(Fault) {
        switch value {
        case .basic(let user, _) where CredentialValue.basic(user: user, password: "x").fault != nil:
            let message = "`user` contains a colon or control characters"
            throw Fault(line: fields[.user]?.line, message: message)
        case .header(let name, _) where CredentialValue.header(name: name, value: "x").fault != nil:
            let message =
                "`name` cannot be the name of the header field; accepted: letters, digits and `-`, such as X-Token, "
                + "and no field that the client sets, such as Host"
            throw Fault(line: fields[.name]?.line, message: message)
        default: break
        }
    }

    private typealias Field = (line: Int, text: String)

    private static func fields(of text: String) throws(Fault) -> [Key: Field] {
        var fields: [Key: Field] = [:]
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (number, line) in zip(1..., lines) {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.isEmpty || line.hasPrefix("#") { continue }
            guard let colon = line.firstIndex(of: ":") else {
                throw Fault(line: number, message: "the line has no `:`; accepted: `key: value`")
            }
            // If the file has another format, the line may be a secret, so its key must not be quoted.
            guard let key = Key(rawValue: String(line[..<colon])) else {
                let accepted = Key.allCases.map { "`\($0)`" }.joined(separator: ", ")
                throw Fault(line: number, message: "the key is unknown; accepted: \(accepted)")
            }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            guard fields.updateValue((number, value), forKey: key) == nil else {
                throw Fault(line: number, message: "`\(key)` was given before")
            }
        }
        return fields
    }

    private static func required(_ key: Key, in fields: [Key: Field]) throws(Fault) -> Field {
        guard let field = fields[key] else { throw Fault(line: nil, message: "`\(key)` is missing") }
        guard !field.text.isEmpty else { throw Fault(line: field.line, message: "`\(key)` is empty") }
        return field
    }

    private static func kind(_ field: Field) throws(Fault) -> Kind {
        if let kind = Kind(rawValue: field.text) { return kind }
        let accepted = Kind.allCases.map { "`\($0)`" }.joined(separator: ", ")
        throw Fault(line: field.line, message: "the type is unknown; accepted: \(accepted)")
    }
}
