package import ClientCore
internal import Foundation
internal import OfflineQueue

/// The task of a ``ClientTestProcess``, which receives it as JSON in its only argument.
package enum ClientProcessOptions: Codable, Sendable {
    case completion(CompletionOptions)
    case queueCompletion(CompletionProcessOptions)
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

/// A series of seeds for random requests. A ``CompletionSeries`` runs them.
package struct CompletionOptions: Codable, Sendable {
    /// An intentional fault in each seed, to verify that the checks detect the fault.
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
    /// A TLS server that receives some of the requests, so that its trust is evaluated; `nil` for no TLS requests.
    package var tls: CompletionTLS?
    package var fault: Fault?
    /// How long a seed waits until all handlers were called, all waits have ended and everything was released, in
    /// milliseconds. Only a failing seed takes this long.
    package var timeout = 20_000

    package init(firstSeed: UInt64, count: Int) {
        self.firstSeed = firstSeed
        self.count = count
    }
}

/// One of the processes of a seed, which share a queue's store. A ``CompletionProcess`` runs it.
package struct CompletionProcessOptions: Codable, Sendable {
    /// When the process kills itself.
    package enum ExitPoint: Codable, Sendable {
        /// When it passes one of ``points`` for the given time, counted from 1.
        case point(String, Int)
        /// After it has printed the given number of lines with this beginning.
        case line(String, Int)
    }

    /// The names of the places in the queue's code at which the process can kill itself.
    package static let points = CrashPoint.allCases.map(\.rawValue)

    package var seed: UInt64
    /// The directory of the queue.
    package var directory: String
    /// `nil` if the process does not kill itself.
    package var exitPoint: ExitPoint?
    /// Whether the process makes no requests, and ends when all stored requests have ended.
    package var isLast = false
    /// How long the process waits until all handlers were called, in milliseconds.
    package var timeout = 20_000

    package init(seed: UInt64, directory: String) {
        self.seed = seed
        self.directory = directory
    }
}

extension ClientTestProcess {
    /// The path of the executable ClientTestProcess, which is in the same directory as the tests.
    package static let path = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "ClientTestProcess").path
}
