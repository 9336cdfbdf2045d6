/// A type that has a value for a response without content.
@preconcurrency public protocol EmptyResponse: Sendable {
    /// The value of a response without content.
    static func emptyValue() -> Self
}

/// What a response without content is decoded as.
public struct Empty: Codable, Hashable, EmptyResponse {
    /// The one value.
    public static let value = Empty()

    /// The one value.
    public static func emptyValue() -> Empty { value }
}
