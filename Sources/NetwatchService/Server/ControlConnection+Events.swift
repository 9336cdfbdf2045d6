internal import NIOCore
internal import NIOHTTP1

// The events that a connection takes, and the actions that it returns.
extension ControlConnection {
    /// What the connection's single timer measures.
    enum Deadline: Hashable {
        case head, body, response, idle, linger
    }

    enum Event {
        case opened
        /// Raw bytes arrived, before they are decoded.
        case bytesArrived
        case input(Input)
        /// The connection got a slot of the class that it asked for.
        case admitted
        case refused(Problem)
        case answered(ControlResponse)
        /// The response was handed to the kernel.
        case flushed
        case deadlinePassed
        /// The server stops: finish the request in flight.
        case stop
        case closed
    }

    /// Input from the client.
    enum Input {
        case part(HTTPServerRequestPart)
        case malformed(HTTPParserError)
        /// The client closed its sending side.
        case end
    }

    enum Action {
        /// Starts a deadline, which replaces the previous one.
        case arm(Deadline)
        case disarm
        case sendContinue
        /// Requests a slot of a class, for a body of `bytes` bytes. The next event is `admitted` or `refused`.
        case requestSlot(ConnectionClass, bytes: Int)
        case handle(ControlRequest)
        case respond(Reply)
        /// Closes the sending side, while input is still read.
        case closeOutput
        case close
    }

    struct Reply {
        let response: ControlResponse
        /// Whether the request was HEAD: `Content-Length` is sent, the body is not.
        let omitsBody: Bool
        let closes: Bool
    }
}

extension ControlConnection.Reply {
    var head: HTTPResponseHead {
        var headers = response.headers
        headers.replaceOrAdd(name: "content-length", value: "\(response.body.count)")
        if closes { headers.replaceOrAdd(name: "connection", value: "close") }
        return HTTPResponseHead(version: .http1_1, status: response.status, headers: headers)
    }
}
