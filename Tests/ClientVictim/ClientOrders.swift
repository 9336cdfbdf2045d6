package import ClientCore
internal import Foundation

/// What a ``ClientVictim`` is to do; its only argument, as JSON.
package enum ClientOrders: Codable, Sendable {
    case law(LawOrders)
    case hostile(HostileOrders)
    case process(ProcessOrders)

    /// The argument that says this.
    package var argument: String {
        get throws { String(decoding: try JSONEncoder().encode(self), as: UTF8.self) }
    }

    init(argument: String) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(argument.utf8))
    }
}

/// Which random requests are made.
package struct LawOrders: Codable, Sendable {
    /// What is broken in each seed, to show that the check notices.
    package enum Breakage: Codable, Hashable, Sendable {
        /// In the code under test.
        case fault(RequestFault)
        /// A descriptor is opened and stays open.
        case opensDescriptor
        /// A file is left among the temporary ones.
        case leavesFile
        /// A report of progress says less than the one before it.
        case reversesProgress
        /// Two handlers are taken for each other.
        case swapsHandlers
    }

    package var firstSeed: UInt64
    package var count: Int
    /// A server that some of the requests go to, which has to be trusted; `nil` for none.
    package var tls: LawTLS?
    package var breakage: Breakage?
    /// How long a seed has for what is to come back. Milliseconds; only a failing seed takes as long.
    package var patience = 20_000

    package init(firstSeed: UInt64, count: Int) {
        self.firstSeed = firstSeed
        self.count = count
    }
}

extension ClientVictim {
    /// Where the program is: beside the tests.
    package static let path = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "ClientVictim").path
}
