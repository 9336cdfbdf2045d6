package import Foundation

/// A URL that receives the outcome of a request when the request ends.
///
/// ```swift
/// var options = EnqueueOptions()
/// options.onDone = Webhook(url: "https://example.com/outcomes")
/// ```
///
/// The queue sends the outcome in a POST request with a JSON object. This POST request is stored in the transaction
/// that ends the reported request, so a crash does not lose it. It is then an ordinary request of the queue, with a
/// lane, retries and the default time to live. Its idempotency key identifies the end that it reports, so the server
/// can recognize a repeated delivery.
///
/// The object has these members; those without a value are left out:
///
/// | member | value |
/// |---|---|
/// | `v` | the version of the object: 1 |
/// | `id` | the id of the request |
/// | `tag` | the request's ``EnqueueOptions/tag`` |
/// | `event` | `delivered`, `dead`, `expired`, `cancelled` or `superseded` |
/// | `state` | the final state: `delivered`, `dead`, `cancelled` or `superseded` |
/// | `status` | the status of the last response |
/// | `reason` | why the queue gave the request up, or the error of the last attempt; at most 512 bytes |
/// | `attempts` | the number of attempts that count |
/// | `finished` | the time of the end (RFC 3339), by the wall clock |
public struct Webhook: Hashable, Sendable, Codable {
    /// An `http` or `https` URL without secrets: no user name and no password, and no secret items in its query.
    public var url: String
    /// The name of the credential that the queue adds at each attempt, as for ``EnqueueOptions/credential``. Default
    /// `nil`: none.
    public var credential: String?

    /// Creates a webhook; see the properties.
    public init(url: String, credential: String? = nil) {
        self.url = url
        self.credential = credential
    }
}

extension Webhook {
    private enum CodingKeys: String, CodingKey, CaseIterable {
        case url, credential
    }

    /// Decodes a webhook.
    ///
    /// - Throws: `DecodingError`, also for an unknown member, which must not be ignored.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: MemberName.self)
        let known = CodingKeys.allCases.map(\.rawValue)
        if let name = members.allKeys.map(\.stringValue).filter({ !known.contains($0) }).min() {
            let context = DecodingError.Context(
                codingPath: members.codingPath,
                debugDescription:
                    "\(quoted(name.snakeCase)) is not a known name; accepted: \(known.joined(separator: ", "))"
            )
            throw DecodingError.dataCorrupted(context)
        }
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            url: try values.decode(String.self, forKey: .url),
            credential: try values.decodeIfPresent(String.self, forKey: .credential)
        )
    }

    /// The maximum size of the JSON object: 2560 bytes. In the worst case, the id and the tag have 255 characters that
    /// are escaped with two bytes each, and so have the 512 bytes of the reason; all other members take less than 400
    /// bytes.
    static let maximumBodyBytes = 2560
    /// The bytes of the header fields of a webhook in their stored form, rounded up.
    private static let headBytes = 64

    /// The size that a request with this webhook reserves in the queue's limits, in bytes. The webhook then always
    /// fits when the request ends.
    var reservedBytes: Int64 { Int64(url.utf8.count + Self.headBytes + Self.maximumBodyBytes) }

    /// Returns the request that sends a JSON object.
    package func request(reporting body: Data) -> QueueRequest {
        QueueRequest(
            method: "POST",
            url: url,
            headers: [QueueRequest.Header(name: "Content-Type", value: "application/json")],
            body: body
        )
    }
}
