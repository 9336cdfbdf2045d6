internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// The destination of a response's body. It is only used on its request's queue.
protocol ResponseSink {
    /// Changes the request of a hop, for example to request the rest of a file.
    mutating func prepare(_ request: inout URLRequest) throws
    /// Receives the final head of a hop, and decides whether to accept the body.
    mutating func begin(_ head: ResponseHead) throws -> SinkDecision
    mutating func write(_ bytes: [UInt8]) throws
    /// Called when the attempt has ended. Throws if the body is incomplete.
    mutating func end(_ failure: (any Error)?) throws
    /// Called when the response was accepted. Moves the body to its destination.
    mutating func accept(_ head: ResponseHead?) throws
    /// Called when the request has finished. Returns the body for the handlers.
    mutating func finish(_ failure: (any Error)?) -> ResponseBody
    /// Releases the program's closures. Nothing more will be written.
    mutating func releaseClosures()
    /// The body received so far, for validators.
    var body: ResponseBody { get }
    /// The number of bytes present before the hop began.
    var offset: Int64 { get }
}

/// How a sink handles the response of a hop.
enum SinkDecision {
    case accept
    /// The response is unusable: prepare the request again and send it again.
    case sendAgain
}

extension ResponseSink {
    var offset: Int64 { 0 }

    mutating func prepare(_ request: inout URLRequest) throws {}
    mutating func end(_ failure: (any Error)?) throws {}
    mutating func accept(_ head: ResponseHead?) throws {}
    mutating func releaseClosures() {}
}
