extension ScriptedServer {
    /// A header field as it came.
    package struct Header: Hashable, Sendable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A request as it came.
    package struct Request: Hashable, Sendable {
        package let method: String
        package let target: String
        package let headers: [Header]
        package let body: [UInt8]
        /// Which connection it came over: the first one accepted is 1.
        package let connection: Int
        /// Its place among the requests of all connections: the first one is 1.
        package let number: Int

        /// The values of a field, whose name is compared without case.
        package func values(of name: String) -> [String] {
            headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        }
    }

    /// What the server does about a request.
    package indirect enum Action: Sendable {
        /// Answers, with `Content-Length` unless the headers frame the body already, and keeps the
        /// connection.
        case respond(status: Int, headers: [Header] = [], body: [UInt8] = [])
        /// Closes the connection, as an idle server does, without a byte.
        case close
        /// Resets the connection (`SO_LINGER` of 0).
        case reset
        /// Does nothing until ``ScriptedServer/release()`` or until the client goes away, then this.
        case stall(then: Action)
        /// Sends these bytes again and again until the client goes away.
        case flood([UInt8])
        /// As ``flood(_:)``, one byte every 50 ms.
        case drip([UInt8])
        /// Sends these bytes, then does the next thing; ``keep`` waits for another request.
        case send([UInt8], then: Action)
        /// Waits for another request.
        case keep

        /// Sends header lines until the client goes away.
        package static var endlessHeaders: Action {
            let line = "X-Endless: \(String(repeating: "x", count: 1000))\r\n"
            return .send("HTTP/1.1 200 OK\r\n", then: .flood(Array(line.utf8)))
        }

        /// Sends a body until the client goes away.
        package static var endlessBody: Action {
            .send("HTTP/1.1 200 OK\r\n\r\n", then: .flood([UInt8](repeating: 0x78, count: 16384)))
        }

        /// Sends a body a byte at a time, every 50 ms, until the client goes away.
        package static var drippingBody: Action { .send("HTTP/1.1 200 OK\r\n\r\n", then: .drip([0x78])) }

        /// Sends this text, then does the next thing.
        package static func send(_ text: String, then next: Action) -> Action {
            .send(Array(text.utf8), then: next)
        }

        /// An answer with a body of text.
        package static func respond(_ text: String) -> Action {
            .respond(status: 200, body: Array(text.utf8))
        }
    }

    /// What the server does about a connection.
    package enum Mode: Sendable {
        /// Reads requests and follows the script.
        case scripted
        /// Accepts and never reads.
        case deaf
    }
}
