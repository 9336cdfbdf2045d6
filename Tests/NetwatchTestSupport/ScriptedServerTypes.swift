extension ScriptedServer {
    /// A header field as received.
    package struct Header: Hashable, Sendable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A request as received.
    package struct Request: Hashable, Sendable {
        package let method: String
        package let target: String
        package let headers: [Header]
        package let body: [UInt8]
        /// The number of the request's connection. The first accepted connection has 1.
        package let connection: Int
        /// The number of the request among the requests of all connections. The first one has 1.
        package let number: Int

        /// Returns the values of all header fields with this name, which is case-insensitive.
        package func values(of name: String) -> [String] {
            headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        }
    }

    /// The action of the server for one request.
    package indirect enum Action: Sendable {
        /// Sends a response and keeps the connection open.
        ///
        /// Adds a `Content-Length` unless `headers` contains one or a `Transfer-Encoding`.
        case respond(status: Int, headers: [Header] = [], body: [UInt8] = [])
        /// Closes the connection without a response, like a server after its idle timeout.
        case close
        /// Resets the connection (`SO_LINGER` of 0).
        case reset
        /// Waits for ``ScriptedServer/release()``, and then continues with this action. If the client disconnects
        /// first, the connection ends.
        case stall(then: Action)
        /// Sends these bytes again and again until the client disconnects.
        case flood([UInt8])
        /// Sends these bytes again and again, one byte every 50 ms, until the client disconnects.
        case drip([UInt8])
        /// Sends these bytes, and then continues with the next action.
        case send([UInt8], then: Action)
        /// Keeps the connection open, and waits for another request.
        case keep

        /// Sends the start of a response, and then header lines until the client disconnects.
        package static var endlessHeaders: Action {
            let line = "X-Endless: \(String(repeating: "x", count: 1000))\r\n"
            return .send("HTTP/1.1 200 OK\r\n", then: .flood(Array(line.utf8)))
        }

        /// Sends the head of a response, and then a body until the client disconnects.
        package static var endlessBody: Action {
            .send("HTTP/1.1 200 OK\r\n\r\n", then: .flood([UInt8](repeating: 0x78, count: 16384)))
        }

        /// Sends the head of a response with the first byte of its body, and then one byte every 50 ms until the client
        /// disconnects.
        package static var drippingBody: Action { .send("HTTP/1.1 200 OK\r\n\r\nx", then: .drip([0x78])) }

        /// Sends a text, and then continues with the next action.
        package static func send(_ text: String, then next: Action) -> Action {
            .send(Array(text.utf8), then: next)
        }

        /// Sends a response with the status 200 and a text as its body.
        package static func respond(_ text: String) -> Action {
            .respond(status: 200, body: Array(text.utf8))
        }
    }

    /// How the server handles its connections.
    package enum Mode: Sendable {
        /// Reads requests and follows the script.
        case scripted
        /// Accepts connections, but never reads or writes.
        case deaf
    }
}
