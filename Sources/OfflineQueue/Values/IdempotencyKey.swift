/// The idempotency key, by which a server recognizes two requests as the same one
/// ([draft-ietf-httpapi-idempotency-key-header](https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/)).
/// The key is fixed when the request is enqueued, and every attempt carries it unchanged.
public struct IdempotencyKey: Hashable, Sendable {
    /// The source of an idempotency key.
    public enum Source: Hashable, Sendable {
        /// A random UUID for methods that are not idempotent (RFC 9110 §9.2.2), no key for others.
        case automatic
        /// No key. A request that is not idempotent is then held if the server may have applied it.
        case none
        /// The given key: 1 to 255 bytes of printable ASCII, without `"` and `\` if ``IdempotencyKey/isQuoted``.
        case value(String)
    }

    /// The source of the key. Default `.automatic`.
    public var source: Source
    /// The name of the header field. Default `Idempotency-Key`.
    public var headerName = "Idempotency-Key"
    /// Whether the key is sent in quotes, as an RFC 8941 string, which the draft requires. Default `false`, because
    /// most servers expect it unquoted.
    public var isQuoted = false

    /// Creates a key.
    public init(_ source: Source = .automatic) {
        self.source = source
    }

    /// A random key for methods that are not idempotent.
    public static let automatic = IdempotencyKey(.automatic)
    /// No key.
    public static let none = IdempotencyKey(.none)

    /// Returns a key with the given value.
    public static func value(_ key: String) -> IdempotencyKey {
        IdempotencyKey(.value(key))
    }
}
