extension SessionManager {
    /// Makes a TCP connection for bytes of any kind.
    ///
    /// The name is looked up, and its addresses are tried in order, the next one 250 ms after the one before
    /// or as soon as that one has failed (RFC 8305 §5); after 15 s in all it is `URLError.timedOut`. Of the
    /// session's configuration nothing applies; but a session that refuses requests because of it refuses
    /// streams too, and so does one for a unix socket.
    ///
    /// - Parameters:
    ///   - hostName: A name, in ASCII, or an address, IPv6 without brackets.
    ///   - port: 1 to 65535. Other values end the stream with `URLError.badURL`.
    @discardableResult
    public func stream(withHostName hostName: String, port: Int) -> StreamRequest {
        let stream = StreamRequest(hostName, port, context)
        context.add(stream)
        if let refusal = context.settings.streamRefusal {
            stream.end(because: .sessionConfigurationRefused(property: refusal))
        } else if context.hooks.startsImmediately {
            stream.resume()
        }
        return stream
    }
}

extension SessionSettings {
    fileprivate var streamRefusal: String? {
        refusal ?? unixSocketPath.map { "`\($0)` is a unix socket, and a stream is TCP" }
    }
}
