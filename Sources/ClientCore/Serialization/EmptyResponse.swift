/// A type with a value for responses without content.
@preconcurrency public protocol EmptyResponse: Sendable {
    /// The value of a response without content.
    static func emptyValue() -> Self
}

/// The decoded value of a response without content.
public struct Empty: Codable, Hashable, EmptyResponse {
    /// The only value.
    public static let value = Empty()

    /// Returns the only value.
    public static func emptyValue() -> Empty { value }
}
