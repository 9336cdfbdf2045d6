internal import Dispatch

extension SessionContext {
    /// How long after the last request the ways of a session's connections are watched, at least; up to twice as
    /// long. libcurl does not use a connection again that has been idle for 118 s (`CURLOPT_MAXAGE_CONN`).
    static let watchedIdleTime: Duration = .seconds(150)

    func connectionMade(to address: String) {
        if connections.note(address) { lookAgain(after: lastIdentifier) }
    }

    /// Ends the watches if there is nothing under way, and no request was made after that one.
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
