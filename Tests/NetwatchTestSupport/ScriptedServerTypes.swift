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
        /// The number of the connection, from 1 in the order of acceptance.
        package let connection: Int
        /// The number of the request among those of all connections, from 1.
        package let number: Int

        /// Returns the values of a field. Names are compared without case.
        package func values(of name: String) -> [String] {
            headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        }
    }

    /// The server's action for a request.
    package indirect enum Action: Sendable {
        /// Sends a response and keeps the connection open. It has a `Content-Length` unless the headers frame the body
        /// already.
        case respond(status: Int, headers: [Header] = [], body: [UInt8] = [])
        /// Closes the connection without sending a byte, like a server after its idle timeout.
        case close
        /// Resets the connection (`SO_LINGER` of 0).
        case reset
        /// Waits until ``ScriptedServer/release()`` or until the client disconnects, then continues with this action.
        case stall(then: Action)
        /// Sends these bytes repeatedly until the client disconnects.
        case flood([UInt8])
        /// Like ``flood(_:)``, with one byte every 50 ms.
        case drip([UInt8])
        /// Sends these bytes, then continues with the next action; ``keep`` waits for another request.
        case send([UInt8], then: Action)
        /// Waits for another request.
        case keep

        /// Sends header lines until the client disconnects.
        package static var endlessHeaders: Action {
            let line = "X-Endless: \(String(repeating: "x", count: 1000))\r\n"
            return .send("HTTP/1.1 200 OK\r\n", then: .flood(Array(line.utf8)))
        }

        /// Sends a body until the client disconnects.
        package static var endlessBody: Action {
            .send("HTTP/1.1 200 OK\r\n\r\n", then: .flood([UInt8](repeating: 0x78, count: 16384)))
        }

        /// Sends a body of one byte every 50 ms until the client disconnects.
        package static var drippingBody: Action { .send("HTTP/1.1 200 OK\r\n\r\n", then: .drip([0x78])) }

        /// Sends this text, then continues with the next action.
        package static func send(_ text: String, then next: Action) -> Action {
            .send(Array(text.utf8), then: next)
        }

        /// A response with a text as its body.
        package static func respond(_ text: String) -> Action {
            .respond(status: 200, body: Array(text.utf8))
        }
    }

    /// The server's handling of connections.
    package enum Mode: Sendable {
        /// Reads requests and follows the script.
        case scripted
        /// Accepts connections and never reads.
        case deaf
    }
}
