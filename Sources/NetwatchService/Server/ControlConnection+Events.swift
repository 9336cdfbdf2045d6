internal import NIOCore
internal import NIOHTTP1

// The events that a connection receives, and the actions that it returns.
extension ControlConnection {
    /// What the connection's single timer measures.
    enum Deadline: Hashable {
        case head, body, response, idle, linger, keepAlive
    }

    enum Event {
        case opened
        /// Raw bytes arrived, before they are decoded.
        case bytesArrived
        case input(Input)
        /// The connection got the slot that it requested.
        case admitted
        /// All slots of the requested class are taken.
        case refused(Problem)
        /// The handler returned a response.
        case responded(ControlResponse)
        /// The kernel has taken the whole response.
        case flushed
        /// The stream of the response has a piece, or has ended.
        case piece([UInt8]?)
        /// The kernel has taken the head of a streamed response, a piece or a keep-alive.
        case pieceFlushed
        case deadlinePassed
        /// The server stops. A request in flight is still finished.
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
        /// Starts the timer for a deadline. The previous deadline no longer applies.
        case arm(Deadline)
        case disarm
        case sendContinue
        /// Requests a slot of a class, for a body of `bytes` bytes. The next event is `admitted` or `refused`.
        case requestSlot(ConnectionClass, bytes: Int)
        case handle(ControlRequest)
        case respond(Reply)
        /// Sends the head and the first bytes of a streamed response. The next event is `pieceFlushed`.
        case beginStream(Reply)
        /// Requests the next piece of the stream. The next event is `piece`.
        case pull
        /// Sends a piece. The next event is `pieceFlushed`.
        case write([UInt8])
        /// Sends the keep-alive of the stream. The next event is `pieceFlushed`.
        case writeKeepAlive
        /// Cancels the request for the next piece, so that the stream ends.
        case cancelStream
        /// Sends the end of a streamed response. The next event is `flushed`.
        case endStream
        /// Closes the sending side. Input is still read.
        case closeOutput
        case close
    }

    struct Reply {
        let response: ControlResponse
        /// Whether the request was HEAD: the response has `Content-Length`, but no body.
        let omitsBody: Bool
        let closes: Bool
    }
}

extension ControlConnection.Reply {
    var head: HTTPResponseHead {
        var headers = response.headers
        // Without a length, the encoder uses the chunked transfer coding.
        if response.stream == nil || omitsBody {
            headers.replaceOrAdd(name: "content-length", value: "\(response.body.count)")
        }
        if closes { headers.replaceOrAdd(name: "connection", value: "close") }
        return HTTPResponseHead(version: .http1_1, status: response.status, headers: headers)
    }
}
