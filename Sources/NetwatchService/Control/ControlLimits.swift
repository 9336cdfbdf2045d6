extension ControlServer {
    /// Everything the server bounds, so that no client can hold more than its share of memory, time or
    /// descriptors. A limit that is reached answers with problem+json where HTTP still allows an answer.
    package struct Limits: Hashable, Sendable {
        /// Connections served at once. Default 64. The next one is answered 503 and closed.
        package var connections = 64
        /// Connections being told 503 at once. Default 16. One more is closed without an answer.
        package var refusedConnections = 16

        /// Request target, header names and header values together, in bytes. Default 16 KiB. Beyond: 431.
        package var headerBytes = 16 * 1024
        /// The target, one header name or one header value, in bytes. Default 8 KiB. Beyond: 431.
        package var headerFieldBytes = 8 * 1024
        /// Header fields, trailers included. Default 100. Beyond: 431.
        package var headerFields = 100
        /// Body bytes. Default 1 MiB. Beyond: 413, as soon as `Content-Length` or the bytes tell.
        package var bodyBytes = 1024 * 1024

        /// From the acceptance of a connection, or the first byte of a later request, to the end of its
        /// headers, however often bytes trickle in. Default 10 s. Then 408, or a close if nothing came.
        package var headerDeadline = Duration.seconds(10)
        /// From the end of the headers to the end of the body. Default 30 s. Then 408.
        package var bodyDeadline = Duration.seconds(30)
        /// For the client to take a response. Default 30 s. Then the connection is closed.
        package var responseDeadline = Duration.seconds(30)
        /// Silence between two requests of one connection. Default 60 s. Then the connection is closed.
        package var idleTimeout = Duration.seconds(60)
        /// How long input is still read and thrown away after the last response of a connection, so that
        /// a client that is sending reads that response before its write fails. Default 2 s.
        package var lingerDeadline = Duration.seconds(2)
        /// How long ``ControlServer/stop()`` lets requests in flight finish. Default 5 s.
        package var stopGrace = Duration.seconds(5)

        package init() {}
    }
}
