internal import NetwatchEventLoop

/// The servers that a program's check has accepted. A value without I/O.
///
/// An entry is valid only for the same host, the same certificates in the same order, byte by byte, and the same
/// verdict of OpenSSL. So a server that presents other certificates, or whose certificate has expired meanwhile, is not
/// in the list. A rejected server is never remembered.
struct AcceptedServers {
    /// The time for which handshakes with an accepted server need no question, from the start of the program's code.
    /// Open connections outlive it. A program that changes its mind, for example because of a new revocation list, is
    /// asked again after this time.
    static let lifetime = Duration.seconds(600)
    /// The maximum number of servers. With more, the one whose lifetime ends first is forgotten. OpenSSL accepts 100
    /// KiB (102,400 bytes) of certificates from a server. So the list has at most 6.6 MB in addition to roots that were
    /// found locally, and usually less than 0.5 MB.
    static let capacity = 64

    private var expirations: [PresentedTrust: BootInstant] = [:]

    func contains(_ server: PresentedTrust, at now: BootInstant) -> Bool {
        expirations[server].map { now < $0 } ?? false
    }

    mutating func insert(_ server: PresentedTrust, at now: BootInstant) {
        expirations[server] = now + Self.lifetime
        guard expirations.count > Self.capacity else { return }
        if let oldest = expirations.min(by: { $0.value < $1.value }) { expirations[oldest.key] = nil }
    }
}
