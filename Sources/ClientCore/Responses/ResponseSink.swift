internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// The destination of a response's body. A sink is used only on its request's queue.
protocol ResponseSink {
    /// Prepares for the response to a request. Returns header fields that replace those of the request, for example to
    /// request only the rest of a file.
    mutating func prepare(for request: URLRequest) throws -> [TransferRequest.Header]
    /// Receives the head of a response that is neither a redirect nor an answered challenge, and decides whether to
    /// accept the body.
    mutating func begin(_ head: ResponseHead) throws -> SinkDecision
    mutating func write(_ piece: BodyPiece) throws
    /// Called when the attempt has ended, with its error or `nil`. Throws if the body is incomplete.
    mutating func end(_ failure: (any Error)?) throws
    /// Called when all validators have accepted the response. Moves the body to its destination.
    mutating func accept(_ head: ResponseHead?) throws
    /// Called when the request has finished, with its error or `nil`. Returns the body for the handlers.
    mutating func finish(_ failure: (any Error)?) -> ResponseBody
    /// Releases the program's closures. Called when no more bytes will be written.
    mutating func releaseClosures()
    /// The body received so far, for validators.
    var body: ResponseBody { get }
    /// The number of bytes of the body that an earlier transfer has already written.
    var offset: Int64 { get }
}

/// How a sink handles the response of a hop.
enum SinkDecision {
    case accept
    /// The response is unusable. The request must be prepared and sent again.
    case sendAgain
}

extension ResponseSink {
    var offset: Int64 { 0 }

    mutating func prepare(for request: URLRequest) throws -> [TransferRequest.Header] { [] }
    mutating func end(_ failure: (any Error)?) throws {}
    mutating func accept(_ head: ResponseHead?) throws {}
    mutating func releaseClosures() {}
}
