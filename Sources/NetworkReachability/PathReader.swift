internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Reads the kernel's present state: interfaces, and the verdict on any address.
///
/// Confined to the monitor's thread, like the socket it owns.
final class PathReader {
    private let socket: RequestSocket
    private(set) var interfaces = InterfaceTable()
    /// Messages of the kernel that could not be read.
    private(set) var malformed = 0

    init() throws(SystemError) {
        socket = try RequestSocket()
    }

    /// Reads the interfaces and their addresses anew. Returns false when the tables kept changing while
    /// they were read, so that they should be read again soon.
    func readInterfaces() throws(SystemError) -> Bool {
        let links = try socket.links()
        let addresses = try socket.addresses()
        interfaces = InterfaceTable(
            links: Dictionary(links.elements.map { ($0.index, $0) }) { _, last in last },
            addresses: addresses.elements
        )
        malformed += links.malformed + addresses.malformed
        return !links.isInterrupted && !addresses.isInterrupted
    }

    /// The verdict on a target that has these addresses; `nil` when it has none.
    func verdict(on addresses: [IPAddress]) -> PathStatus.Verdict? {
        .combined(addresses.map(verdict))
    }

    private func verdict(on address: IPAddress) -> PathStatus.Verdict {
        do {
            let decision = PathDecision(
                destination: address,
                lookup: try socket.lookUp(address, matchesTable: false),
                tableMatch: try socket.lookUp(address, matchesTable: true),
                interfaces: interfaces
            )
            return decision.verdict
        } catch {
            return .unknown(.lookupFailed)
        }
    }
}
