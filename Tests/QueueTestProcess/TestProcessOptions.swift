internal import Foundation

/// The options of a ``TestProcess``, passed as its only argument in JSON.
package struct TestProcessOptions: Codable, Sendable {
    package enum Mode: String, Codable, Sendable {
        /// Accepts requests until it is killed, and sends them if ``TestProcessOptions/sends`` is true.
        case produce
        /// Sends the remaining requests and exits.
        case drain
    }

    /// A deliberate fault, to show that the checks detect it.
    package enum Fault: String, Codable, Sendable {
        /// Reports a request as accepted before the queue has accepted it.
        case reportsEarly
        /// Enqueues FIFO requests without FIFO order.
        case forgetsOrder
        /// Syncs do nothing but report success. Only with ``TestProcessOptions/forgetting``.
        case syncsNothing
    }

    /// A disk that loses unsynced data when the process is killed; see `netwatch_forgetting_arm`.
    package struct Forgetting: Codable, Sendable {
        package var leakedPerMille: UInt32
        package var seed: UInt64

        package init(leakedPerMille: UInt32, seed: UInt64) {
            self.leakedPerMille = leakedPerMille
            self.seed = seed
        }
    }

    /// The point at which the process kills itself.
    package struct Crash: Hashable, Codable, Sendable {
        package enum Place: String, Codable, Sendable, CaseIterable {
            // Crash points of the queue, with the names that the queue uses for them.
            case bodySynced, bodyNamed, beforeCommit, afterCommit, claimed, sending, answered, concluded
            /// During a write to the WAL or the database.
            case write
            /// Instead of a sync.
            case sync
            /// During a write by a checkpoint.
            case checkpointWrite
            /// Instead of a sync by a checkpoint.
            case checkpointSync
        }

        package var place: Place
        /// The number of the arrival at `place` that kills the process, counted from 1.
        package var passage: Int

        package init(_ place: Place, passage: Int) {
            self.place = place
            self.passage = passage
        }
    }

    package var directory: String
    /// The base URL of the requests, without a trailing slash.
    package var url: String
    package var mode = Mode.produce
    package var producers = 64
    /// The number of requests that each producer enqueues, one after another.
    package var requestsPerProducer = 4
    /// Whether requests are enqueued with durability `full`; otherwise `normal`.
    package var isDurable = true
    /// Whether requests are sent while others are enqueued.
    package var sends = true
    /// Whether all requests of a lane are held and released repeatedly while others are enqueued. These edits are
    /// always synced.
    package var edits = true
    /// The number of each producer's first request.
    package var firstNumber = 0
    /// The maximum random delay of a producer before each request, in milliseconds.
    package var longestPause = 20
    package var seed: UInt64 = 1
    package var forgetting: Forgetting?
    /// `nil` if the process does not kill itself.
    package var crash: Crash?
    /// The number of pages at which SQLite checkpoints the WAL automatically; 0 for never.
    package var checkpointPages: Int32 = 1000
    package var fault: Fault?

    package init(directory: String, url: String) {
        self.directory = directory
        self.url = url
    }

    /// The JSON argument with these options.
    package var argument: String {
        get throws { String(decoding: try JSONEncoder().encode(self), as: UTF8.self) }
    }

    init(argument: String) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(argument.utf8))
    }
}
