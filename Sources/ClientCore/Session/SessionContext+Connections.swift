internal import Dispatch

extension SessionContext {
    /// The minimum time that the paths of a session's connections are watched after its last request. The
    /// maximum is twice that. libcurl does not reuse a connection that has been idle for 118 s
    /// (`CURLOPT_MAXAGE_CONN`).
    static let watchedIdleTime: Duration = .seconds(150)

    func connectionMade(to address: String) {
        if connections.note(address) { lookAgain(after: lastIdentifier) }
    }

    /// Ends the watches if no request is running and none was created after the given one. Otherwise checks
    /// again later.
    func letGoOfConnections(unusedSince request: Int) {
        if running.isEmpty, lastIdentifier == request {
            connections.letGo()
        } else {
            lookAgain(after: lastIdentifier)
        }
    }

    private func lookAgain(after request: Int) {
        let deadline = DispatchTime.now() + Self.watchedIdleTime.inSeconds
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: deadline) { [weak self] in
            self?.letGoOfConnections(unusedSince: request)
        }
    }
}
