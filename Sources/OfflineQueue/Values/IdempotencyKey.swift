internal import ClientCore
internal import NetwatchTransport

/// The key by which a server recognizes a repeated request.
///
/// The queue determines the key when the request is enqueued, and sends it unchanged in every attempt. The IETF draft
/// [draft-ietf-httpapi-idempotency-key-header](https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/)
/// describes how servers use it.
public struct IdempotencyKey: Hashable, Sendable {
    /// The source of an idempotency key.
    public enum Source: Hashable, Sendable {
        /// A random UUID if the method is not idempotent (RFC 9110 §9.2.2), otherwise no key.
        case automatic
        /// No key. If the method is not idempotent, the request is held when the server may have applied it.
        case none
        /// The given key: 1 to 255 bytes of printable ASCII. With ``IdempotencyKey/isQuoted`` it must not contain `"`
        /// or `\`.
        case value(String)
    }

    /// The source of the key. Default `.automatic`.
    public var source: Source
    /// The name of the header field. Default `Idempotency-Key`.
    public var headerName = TransferRequest.Header.idempotencyKey
    /// Whether the key is sent in quotes, as a string of RFC 8941. Default `false`: the draft requires quotes, but most
    /// servers expect none.
    public var isQuoted = false

    /// Creates a key.
    public init(_ source: Source = .automatic) {
        self.source = source
    }

    /// A random key if the method is not idempotent, otherwise no key.
    public static let automatic = IdempotencyKey(.automatic)
    /// No key.
    public static let none = IdempotencyKey(.none)

    /// Returns a key with the given value.
    public static func value(_ key: String) -> IdempotencyKey {
        IdempotencyKey(.value(key))
    }
}

/// An object with the members `key`, `header`, `quoted` and `none`, all of which may be missing.
extension IdempotencyKey: Codable {
    package enum CodingKeys: String, CodingKey, CaseIterable {
        case key
        case header
        case quoted
        case none
    }

    /// Decodes a key.
    ///
    /// - Throws: `DecodingError`, also if a key is given together with `none`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let value = try container.decodeIfPresent(String.self, forKey: .key)
        let isNone = try container.decodeIfPresent(Bool.self, forKey: .none) ?? false
        guard value == nil || !isNone else {
            throw DecodingError.dataCorruptedError(
                forKey: .none,
                in: container,
                debugDescription: "it cannot be combined with a key"
            )
        }
        self.init(value.map(Source.value) ?? (isNone ? .none : .automatic))
        headerName = try container.decodeIfPresent(String.self, forKey: .header) ?? headerName
        isQuoted = try container.decodeIfPresent(Bool.self, forKey: .quoted) ?? isQuoted
    }

    /// Encodes the members that differ from their defaults.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch source {
        case .automatic: break
        case .none: try container.encode(true, forKey: .none)
        case .value(let value): try container.encode(value, forKey: .key)
        }
        if headerName != Self.automatic.headerName { try container.encode(headerName, forKey: .header) }
        if isQuoted { try container.encode(isQuoted, forKey: .quoted) }
    }
}
