package import ClientCore
internal import Foundation

/// The task of a ``ClientTestProcess``, passed to it as JSON in its only argument.
package enum ClientProcessOptions: Codable, Sendable {
    case completion(CompletionOptions)
    case hostile(HostileOptions)
    case process(ProcessOptions)

    /// The JSON of this task.
    package var argument: String {
        get throws { String(decoding: try JSONEncoder().encode(self), as: UTF8.self) }
    }

    init(argument: String) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(argument.utf8))
    }
}

/// The random requests of a completion run.
package struct CompletionOptions: Codable, Sendable {
    /// An intentional fault in each seed, to verify that the check detects it.
    package enum Fault: Codable, Hashable, Sendable {
        /// A fault in the code under test.
        case request(RequestFault)
        /// A descriptor is opened and never closed.
        case opensDescriptor
        /// A file is left in the temporary directory.
        case leavesFile
        /// A progress report has a lower count than the one before it.
        case reversesProgress
        /// Two handlers are swapped.
        case swapsHandlers
    }

    package var firstSeed: UInt64
    package var count: Int
    /// A TLS server that receives some of the requests and whose trust is evaluated; `nil` for none.
    package var tls: CompletionTLS?
    package var fault: Fault?
    /// How long a seed waits for handlers, waits and leftovers to finish, in milliseconds. Only a failing seed takes
    /// this long.
    package var timeout = 20_000

    package init(firstSeed: UInt64, count: Int) {
        self.firstSeed = firstSeed
        self.count = count
    }
}

extension ClientTestProcess {
    /// The path of the executable, which is in the same directory as the tests.
    package static let path = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "ClientTestProcess").path
}
