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
