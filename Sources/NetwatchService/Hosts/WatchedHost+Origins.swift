internal import NetworkReachability
package import OfflineQueue

extension WatchedHost {
    /// The origins whose server responds if the host's probe succeeds: that of the URL, or those with the host and the
    /// TCP port. Empty if the check sends nothing.
    package var origins: [Origin] {
        switch check {
        case .web(let url, _): return [try? Origin(url: url)].compactMap(\.self)
        case .tcp(let host, let port):
            guard let host = Origin.host(named: host.text) else { return [] }
            return ["http", "https"].map { Origin(scheme: $0, host: host, port: Int(port)) }
        case .route: return []
        }
    }
}
