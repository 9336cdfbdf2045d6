internal import Glibc
internal import NetwatchEventLoop

/// Which of a host's addresses is tried next, and what it means that none could be connected to.
///
/// RFC 8305 §4: the families take turns, beginning with that of the first address, so that a family without
/// a way costs one delay and not one for each of its addresses.
struct AddressRace {
    /// How long an attempt is left alone before the next begins beside it: the Connection Attempt Delay that
    /// RFC 8305 §5 recommends.
    static let delay: Duration = .milliseconds(250)

    private var waiting: ArraySlice<IPAddress>
    private var failures: [SystemError] = []

    /// - Parameter addresses: In the order of preference (RFC 6724).
    init(_ addresses: [IPAddress]) {
        waiting = Self.takingTurns(addresses)[...]
    }

    /// Takes the address that is to be tried now.
    mutating func next() -> IPAddress? { waiting.popFirst() }

    mutating func failed(_ error: SystemError) { failures.append(error) }

    /// The failure that says most: that of the first address there was a way to, else the first of all.
    var verdict: SystemError? {
        failures.first { !Self.noWay.contains($0.errno) } ?? failures.first
    }

    /// Errors of this machine, which has no way there or not the protocol.
    private static let noWay = [ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL, EAFNOSUPPORT]

    private static func takingTurns(_ addresses: [IPAddress]) -> [IPAddress] {
        guard let first = addresses.first?.family else { return [] }
        let preferred = addresses.filter { $0.family == first }
        let others = addresses.filter { $0.family != first }
        let paired = zip(preferred, others).flatMap { [$0, $1] }
        return paired + preferred.dropFirst(others.count) + others.dropFirst(preferred.count)
    }
}
