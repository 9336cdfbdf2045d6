internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Reads the kernel's present state: interfaces, and the verdict on any address.
///
/// Confined to the monitor's thread, like the socket it owns.
final class PathReader {
    private let socket: RequestSocket
    private(set) var interfaces = InterfaceTable()

    init() throws(SystemError) {
        socket = try RequestSocket()
    }

    /// How a reading of the tables went.
    struct Reading {
        /// Messages of the kernel that could not be read.
        let malformed: Int
        /// Whether the tables kept changing while they were read.
        let isInterrupted: Bool
    }

    /// Reads the interfaces and their addresses anew.
    func readInterfaces() throws(SystemError) -> Reading {
        let links = try socket.links()
        let addresses = try socket.addresses()
        interfaces = InterfaceTable(
            links: Dictionary(links.elements.map { ($0.index, $0) }) { _, last in last },
            addresses: addresses.elements
        )
        return Reading(
            malformed: links.malformed + addresses.malformed,
            isInterrupted: links.isInterrupted || addresses.isInterrupted
        )
    }

    /// A verdict, and for how long it holds if nothing is announced; `nil` for ever.
    struct Judgement {
        let verdict: PathStatus.Verdict
        let lifetime: Duration?
    }

    /// The verdict on a target that has these addresses; `nil` when it has none.
    func judge(_ addresses: [IPAddress]) -> Judgement? {
        let judgements = addresses.map(judge)
        guard let verdict = PathStatus.Verdict.combined(judgements.map(\.verdict)) else { return nil }
        return Judgement(verdict: verdict, lifetime: judgements.compactMap(\.lifetime).min())
    }

    private func judge(_ address: IPAddress) -> Judgement {
        do {
            let decision = PathDecision(
                destination: address,
                lookup: try socket.lookUp(address, matchesTable: false),
                tableMatch: try socket.lookUp(address, matchesTable: true),
                interfaces: interfaces
            )
            return Judgement(verdict: decision.verdict, lifetime: decision.lifetime)
        } catch {
            return Judgement(verdict: .unknown(.lookupFailed), lifetime: nil)
        }
    }
}
