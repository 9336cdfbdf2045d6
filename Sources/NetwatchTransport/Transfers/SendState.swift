/// How often and over which connections a request was sent, and what the server said about that.
struct SendState {
    /// The number of times that the request was sent, completely or in part. A time does not count if the server
    /// received nothing.
    private(set) var count = 0
    /// The number of bytes that the connection had sent before the request; `nil` until the request is sent. Always
    /// `nil` for a unix socket.
    private(set) var offset: UInt64?
    /// The number of bytes sent over earlier connections.
    private(set) var earlierBytes: Int64 = 0
    /// Whether the transfer has lost its connection, or libcurl requested a connection that was not prepared. The
    /// reasons are:
    ///
    /// - The connection that libcurl was expected to reuse has just closed.
    /// - The server closed a reused connection before the response.
    /// - The server sent data over a reused connection before the request.
    /// - The packets of the connection were lost; see ``Transfer/markUnsent()``.
    /// - The program must decide about the server's certificates first.
    private(set) var lacksConnection = false
    /// Whether the server has refused the request over HTTP/2 and requires HTTP/1.1 (RFC 9113 §7, `HTTP_1_1_REQUIRED`).
    private(set) var requiresHTTP1 = false
    /// Whether the server refused the request over HTTP/2 when it was last sent, and requires HTTP/1.1. The request may
    /// then be sent once more.
    private(set) var isRefusedOverHTTP2 = false
    private var isRefusedByGoAway = false
    private var wasAddedAgain = false

    /// Whether libcurl has run the transfer once, and has sent the request once.
    var isFirst: Bool { count == 1 && !wasAddedAgain }

    /// Whether the server said that it did not process the request when it was sent for the first and only time.
    var isUnprocessed: Bool { isRefusedByGoAway && count == 1 && earlierBytes == 0 }

    /// Records that the request is about to be sent.
    ///
    /// - Parameter offset: The number of bytes that the connection has sent so far; `nil` if it is not a TCP
    ///   connection.
    mutating func willSend(from offset: UInt64?) {
        count += 1
        self.offset = offset
        isRefusedOverHTTP2 = false
    }

    /// Records that the server has received nothing over the last connection.
    ///
    /// - Parameters:
    ///   - wasSent: Whether ``count`` includes the last time that the request was sent.
    ///   - bytes: The number of bytes sent over the connection.
    mutating func markUnsent(wasSent: Bool, bytes: Int64) {
        loseConnection(bytes: bytes)
        if wasSent { count -= 1 }
        offset = nil
    }

    /// Records that the connection is lost.
    ///
    /// - Parameter bytes: The number of bytes sent over it.
    mutating func loseConnection(bytes: Int64) {
        lacksConnection = true
        earlierBytes += bytes
    }

    /// Records that libcurl runs the transfer again, with another connection.
    mutating func addAgain() {
        (lacksConnection, wasAddedAgain) = (false, true)
    }

    /// Records that the server has refused the request over HTTP/2 and requires HTTP/1.1.
    mutating func requireHTTP1() {
        (requiresHTTP1, isRefusedOverHTTP2) = (true, true)
    }

    /// Records a `GOAWAY` that says that the server processed no stream of the connection.
    mutating func refuseAllStreams() {
        isRefusedByGoAway = true
    }
}
