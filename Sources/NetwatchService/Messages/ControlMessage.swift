package import Foundation
internal import OfflineQueue

/// The JSON bodies of the control API. Clients ignore unknown members; the service rejects them.
package enum ControlMessage {
    /// The version that every response carries as `v`.
    package static let version = 1

    /// The longest request body in a single message: 1 MiB. Longer bodies are uploaded in pieces.
    package static let maximumBodyBytes = 1 << 20

    /// The longest message: 1.5 MiB. A body in Base64 is a third longer; the rest is for the other members.
    package static let maximumMessageBytes = maximumBodyBytes * 3 / 2

    /// The longest piece of an upload: 1 MiB.
    package static let maximumPieceBytes = 1 << 20

    /// The maximum number of ids in one message.
    package static let mostIDs = 10_000

    /// The maximum number of requests or names in one response.
    package static let longestPage = 1000

    /// The approximate maximum size of the requests in one response: 1 MiB. A response lists at least one request, even
    /// if that is larger.
    package static let longestPageBytes = 1 << 20

    /// The longest time for which a client can ask the service to wait before it responds: 300 s.
    package static let longestWait: Duration = .seconds(300)

    package static var encoder: JSONEncoder { QueueJSON.encoder }
    package static var decoder: JSONDecoder { QueueJSON.decoder }
}
