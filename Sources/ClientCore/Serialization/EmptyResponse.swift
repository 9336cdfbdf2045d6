/// A type that has a value for a response without content (status 204 or 205).
@preconcurrency public protocol EmptyResponse: Sendable {
    /// The value of a response without content.
    static func emptyValue() -> Self
}

/// A value to decode from responses that never have content.
public struct Empty: Codable, Hashable, EmptyResponse {
    /// The only value.
    public static let value = Empty()

    /// Returns the only value.
    public static func emptyValue() -> Empty { value }
}
