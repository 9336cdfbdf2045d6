extension ControlServer {
    /// Everything the server bounds, so that no client can hold more than its share of memory, time or
    /// descriptors. A limit that is reached answers with problem+json where HTTP still allows an answer.
    package struct Limits: Hashable, Sendable {
        // MARK: Requests served at once. One more of the same class is answered 503 `busy`.

        /// Requests of the class ``ConnectionClass/call``. Default 128.
        package var calls = 128
        /// Requests of the class ``ConnectionClass/send``. Default 256.
        package var sends = 256
        /// Requests of the class ``ConnectionClass/wait``. Default 1024.
        package var waits = 1024
        /// Requests of the class ``ConnectionClass/upload``. Default 24, each with a body of ``bodyBytes`` at most.
        package var uploads = 24
        /// The bytes of the bodies of all requests of one class that are served. Default 16 MiB. One body may exceed it.
        package var servedBytes = 16 << 20

        // MARK: Connections without a request. One more makes the oldest one close.

        /// Connections whose request is not complete. Default 1024.
        package var arrivingConnections = 1024
        /// How long a connection may keep its place among ``arrivingConnections`` whatever else comes. Default 1 s.
        /// While all places are taken by younger ones, accepting pauses.
        package var arrivalGrace = Duration.seconds(1)
        /// Connections that are kept alive between two requests. Default 256.
        package var idleConnections = 256
        /// Connections with a response that the client has not read completely. Default 256.
        package var respondingConnections = 256
        /// The bytes of all those responses together. Default 24 MiB. One response may exceed it.
        package var respondingBytes = 24 << 20
        /// Connections whose last response was sent, see ``lingerDeadline``. Default 128.
        package var lingeringConnections = 128

        // MARK: Sizes

        /// Request target, header names and header values together, in bytes. Default 16 KiB. Beyond: 431.
        package var headerBytes = 16 * 1024
        /// The target, one header name or one header value, in bytes. Default 8 KiB. Beyond: 431.
        package var headerFieldBytes = 8 * 1024
        /// Header fields, trailers included. Default 100. Beyond: 431.
        package var headerFields = 100
        /// Body bytes. Default 1 MiB. Beyond: 413, as soon as `Content-Length` or the bytes tell.
        package var bodyBytes = 1024 * 1024
        /// A request with a longer body, or a chunked one, has the class ``ConnectionClass/upload``. Default 32 KiB.
        package var smallBodyBytes = 32 * 1024

        // MARK: Deadlines

        /// From the acceptance of a connection, or the first byte of a later request, to the end of the
        /// request, however often bytes trickle in; of an upload to the end of its headers. Default 5 s. Then
        /// 408, or a close if nothing came.
        package var headerDeadline = Duration.seconds(5)
        /// From the end of the headers to the end of the body of an upload. Default 30 s. Then 408.
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

        /// How many requests of a class are served at once.
        func connections(of connectionClass: ConnectionClass) -> Int {
            switch connectionClass {
            case .call: calls
            case .send: sends
            case .wait: waits
            case .upload: uploads
            }
        }
    }
}

extension ControlServer.Limits {
    private static var counts: [WritableKeyPath<ControlServer.Limits, Int>] {
        [
            \.calls, \.sends, \.waits, \.uploads, \.arrivingConnections, \.idleConnections,
            \.respondingConnections, \.lingeringConnections,
        ]
    }

    /// Connections open at once, at most.
    package var connections: Int { Self.counts.reduce(0) { $0 + self[keyPath: $1] } }

    /// Lowers the numbers of connections in proportion, so that they take at most half of the process's descriptors.
    package mutating func fit(descriptors: Int) {
        let (wanted, available) = (connections, descriptors / 2)
        guard wanted > available else { return }
        for count in Self.counts { self[keyPath: count] = max(1, self[keyPath: count] * available / wanted) }
    }
}
