extension SessionManager {
    /// Opens a TCP connection for raw bytes.
    ///
    /// The name is resolved and its addresses are tried in order. The next address is tried after 250 ms, or as soon as
    /// the previous address has failed (RFC 8305 §5). If there is no connection after 15 s in total, the stream fails
    /// with `URLError.timedOut`.
    ///
    /// The session's configuration does not apply to streams, with one exception: a session that refuses all requests
    /// because of its configuration also refuses streams. A session for a unix socket refuses streams, too.
    ///
    /// - Parameters:
    ///   - hostName: An ASCII host name or an IP address; IPv6 without brackets.
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
        refusal ?? unixSocketPath.map { "`\($0)` is a unix socket, but streams use TCP" }
    }
}
