extension ControlServer {
    /// The server's limits, which keep any client from taking too much memory, time or descriptors. A request beyond a
    /// limit is answered with problem+json where HTTP still allows a response.
    package struct Limits: Hashable, Sendable {
        // MARK: Requests served at once. Another one of the same class is answered with 503 `busy`.

        /// The maximum number of ``ConnectionClass/call`` requests. Default 128.
        package var calls = 128
        /// The maximum number of ``ConnectionClass/send`` requests. Default 256.
        package var sends = 256
        /// The maximum number of ``ConnectionClass/wait`` requests. Default 1024.
        package var waits = 1024
        /// The maximum number of ``ConnectionClass/upload`` requests. Default 24, each with a body of at most
        /// ``bodyBytes``.
        package var uploads = 24
        /// The total body bytes of the requests of one class that are served. Default 16 MiB. A single body may exceed
        /// it. Does not apply to ``ConnectionClass/upload``, whose bodies are bounded by their number and
        /// ``bodyBytes``.
        package var servedBytes = 16 << 20

        // MARK: Connections without a request. Another one closes the oldest.

        /// The maximum number of connections whose request is not complete. Default 1024.
        package var arrivingConnections = 1024
        /// How long a connection in ``arrivingConnections`` is safe from being closed for another one. Default 1 s.
        /// While all of them are younger, accepting pauses.
        package var arrivalGrace = Duration.seconds(1)
        /// The maximum number of connections kept alive between two requests. Default 256.
        package var idleConnections = 256
        /// The maximum number of connections whose response the client has not read completely. Default 256.
        package var respondingConnections = 256
        /// The total bytes of those responses. Default 24 MiB. A single response may exceed it.
        package var respondingBytes = 24 << 20
        /// The maximum number of connections whose last response was sent, see ``lingerDeadline``. Default 128.
        package var lingeringConnections = 128

        // MARK: Sizes

        /// The maximum bytes of request target, header names and header values together. Default 16 KiB. Beyond: 431.
        package var headerBytes = 16 * 1024
        /// The maximum bytes of the target, of one header name or of one header value. Default 8 KiB. Beyond: 431.
        package var headerFieldBytes = 8 * 1024
        /// The maximum number of header fields, including trailers. Default 100. Beyond: 431.
        package var headerFields = 100
        /// The maximum body bytes. Default 1 MiB. Beyond: 413, as soon as `Content-Length` or the received bytes exceed
        /// it.
        package var bodyBytes = 1024 * 1024
        /// The longest body that is not a ``ConnectionClass/upload``, in bytes. Default 32 KiB. A chunked body always
        /// is one.
        package var smallBodyBytes = 32 * 1024

        // MARK: Deadlines

        /// The time from accepting a connection, or from the first byte of a later request, to the end of the request.
        /// It is not extended by bytes that trickle in. For an upload it ends with the headers. Default 5 s. Then the
        /// response is 408, or the connection is closed if nothing arrived.
        package var headerDeadline = Duration.seconds(5)
        /// The time from the end of an upload's headers to the end of its body. Default 30 s. Then the response is 408.
        package var bodyDeadline = Duration.seconds(30)
        /// The time for the client to read a response. Default 30 s. Then the connection is closed.
        package var responseDeadline = Duration.seconds(30)
        /// The idle time between two requests of one connection. Default 60 s. Then the connection is closed.
        package var idleTimeout = Duration.seconds(60)
        /// How long input is read and discarded after the last response of a connection. Default 2 s. This lets a
        /// client that is still sending read the response before its write fails.
        package var lingerDeadline = Duration.seconds(2)
        /// How long ``ControlServer/stop()`` lets requests in flight finish. Default 5 s.
        package var stopGrace = Duration.seconds(5)

        package init() {}

        /// Returns how many requests of a class are served at once.
        func connections(of connectionClass: ConnectionClass) -> Int {
            switch connectionClass {
            case .call: calls
            case .send: sends
            case .wait: waits
            case .upload: uploads
            }
        }

        /// Returns the total body bytes of a class; `nil` when they are bounded by ``bodyBytes`` alone.
        func servedBytes(of connectionClass: ConnectionClass) -> Int? {
            connectionClass == .upload ? nil : servedBytes
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

    /// The maximum number of open connections.
    package var connections: Int { Self.counts.reduce(0) { $0 + self[keyPath: $1] } }

    /// Lowers the connection limits in proportion, so that they take at most half of the process's descriptors.
    package mutating func fit(descriptors: Int) {
        let (wanted, available) = (connections, descriptors / 2)
        guard wanted > available else { return }
        for count in Self.counts { self[keyPath: count] = max(1, self[keyPath: count] * available / wanted) }
    }
}
