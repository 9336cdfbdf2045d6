internal import Foundation

/// What a ``Victim`` is to do; its only argument, as JSON.
package struct VictimOrders: Codable, Sendable {
    package enum Mode: String, Codable, Sendable {
        /// Accepts requests, and sends them unless it is told not to, until it is killed.
        case produce
        /// Sends what is left and ends.
        case drain
    }

    /// What is broken, to show that the checks notice.
    package enum Breakage: String, Codable, Sendable {
        /// A request is reported as accepted before the queue has it.
        case reportsEarly
        /// Lanes that keep order are asked for as ones that do not.
        case forgetsOrder
        /// The disk says that it has written and has not. Only with ``VictimOrders/forgetting``.
        case syncsNothing
    }

    /// A disk that forgets what was not synced when the process is killed; see `netwatch_forgetting_arm`.
    package struct Forgetting: Codable, Sendable {
        package var leakedPerMille: UInt32
        package var seed: UInt64

        package init(leakedPerMille: UInt32, seed: UInt64) {
            self.leakedPerMille = leakedPerMille
            self.seed = seed
        }
    }

    /// Where it kills itself.
    package struct Crash: Hashable, Codable, Sendable {
        package enum Place: String, Codable, Sendable, CaseIterable {
            // The queue's own crash points, by their names.
            case bodySynced, bodyNamed, beforeCommit, afterCommit, claimed, sending, answered, concluded
            /// In the middle of a write to the WAL or the database.
            case write
            /// Instead of a sync.
            case sync
            /// In the middle of a write of a checkpoint.
            case checkpointWrite
            /// Instead of the sync of a checkpoint.
            case checkpointSync
        }

        package var place: Place
        /// At which passage of that place; 1 is the first.
        package var passage: Int

        package init(_ place: Place, passage: Int) {
            self.place = place
            self.passage = passage
        }
    }

    package var directory: String
    /// Where the requests go, without a slash at the end.
    package var url: String
    package var mode = Mode.produce
    package var producers = 64
    /// How many requests each producer enqueues, one after the other.
    package var requestsPerProducer = 4
    /// Whether they are accepted with durability full, else normal.
    package var isDurable = true
    /// Whether they are sent meanwhile.
    package var sends = true
    /// Whether lanes are held and released meanwhile, all of their requests at once. These edits are always synced.
    package var edits = true
    /// The number of each producer's first request.
    package var firstNumber = 0
    /// A producer waits up to this long before each request. Milliseconds.
    package var longestPause = 20
    package var seed: UInt64 = 1
    package var forgetting: Forgetting?
    /// `nil`: it is killed by others.
    package var crash: Crash?
    /// At how many pages SQLite checkpoints the WAL by itself; 0 for never.
    package var checkpointPages: Int32 = 1000
    package var breakage: Breakage?

    package init(directory: String, url: String) {
        self.directory = directory
        self.url = url
    }

    /// The argument that says this.
    package var argument: String {
        get throws { String(decoding: try JSONEncoder().encode(self), as: UTF8.self) }
    }

    init(argument: String) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(argument.utf8))
    }
}
