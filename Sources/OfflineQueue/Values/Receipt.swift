internal import ClientCore
public import Foundation
internal import NetwatchTransport

/// The result of enqueuing a request.
public struct Receipt: Hashable, Sendable {
    /// The effect of enqueuing on the queue.
    public enum Outcome: String, Hashable, Sendable {
        /// The request is stored, with the durability ``Receipt/durability``.
        case accepted
        /// The queue already knew the id. Nothing was changed.
        case known
        /// The queue or the lane was full, or the quota of the user was reached, and the policy was
        /// ``FullQueuePolicy/dropNewest``: the request was not stored.
        case dropped
    }

    /// The request's id. Generated ids are never reused.
    public let id: String
    /// The effect of the call on the queue.
    public let outcome: Outcome
    /// The value of the idempotency key that every attempt sends, if there is one.
    public let idempotencyKey: String?
    /// The failures that the stored request survives.
    public let durability: Durability

    /// Whether this call added the request to the queue.
    public var isNew: Bool { outcome == .accepted }
}

/// The result of ``OfflineQueue/send(_:options:)``. Except in the case ``dropped(id:)``, the request is stored.
public enum SendResult: Hashable, Sendable {
    /// The server responded as expected. `body` contains the first 64 KiB of the response's body.
    ///
    /// If the request had been delivered before this call, `body` is empty. ``OfflineQueue/request(_:)`` then returns
    /// the stored response.
    case delivered(id: String, status: Int, body: Data)
    /// The request waits in the queue.
    case queued(id: String, reason: QueuedReason)
    /// The request was given up, cancelled or replaced, and is not sent again.
    case dead(id: String, reason: String)
    /// The queue or the lane was full, or the quota of the user was reached, and the policy was
    /// ``FullQueuePolicy/dropNewest``: the request was not stored.
    case dropped(id: String)
}

/// A response, as an ``Expectation`` evaluates it to decide whether the request is delivered.
package struct ReceivedResponse: Sendable {
    package let status: Int
    package let headers: [(String, String)]
    /// The received part of the body. It is incomplete if a limit or the end of the connection cut it.
    package let body: Data
    /// Removes the request's secrets from messages that quote the response.
    package var redactor = Redactor.none

    package init(status: Int, headers: [(String, String)] = [], body: Data = Data()) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Returns the first value of a header field; `nil` if the field is missing.
    ///
    /// - Parameter name: The name in lower case.
    func value(of name: String) -> String? { values(of: name).first }

    /// Returns the values of all header fields with this name, which must be in lower case.
    func values(of name: String) -> [String] {
        headers.lazy.filter { $0.0.lowercased() == name }.map(\.1)
    }
}

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
