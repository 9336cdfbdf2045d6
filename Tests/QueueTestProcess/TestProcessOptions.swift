internal import Foundation

/// The options of a ``TestProcess``, passed as its only argument in JSON.
package struct TestProcessOptions: Codable, Sendable {
    package enum Mode: String, Codable, Sendable {
        /// Enqueues requests, and then runs until it is killed. Sends the requests if ``TestProcessOptions/sends`` is
        /// true.
        case produce
        /// Pauses the queue, and converts the stored requests to the current key until it is killed.
        case convert
        /// Sends the remaining requests and exits.
        case drain
    }

    /// A deliberate fault of the process, which the checks must detect.
    package enum Fault: String, Codable, Sendable {
        /// Reports a request as accepted before the queue has accepted it.
        case reportsEarly
        /// Enqueues FIFO requests without FIFO order.
        case forgetsOrder
        /// Reports success for each sync without effect. Requires ``TestProcessOptions/unsyncedWriteLoss``.
        case syncsNothing
    }

    /// A simulated disk that loses unsynced data when the process is killed. `netwatch_power_cut_arm` explains the
    /// values.
    package struct UnsyncedWriteLoss: Codable, Sendable {
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
            // The crash points of the queue, with the names of `CrashPoint`.
            case bodySynced, bodyNamed, beforeCommit, afterCommit, claimed, sending, responded, concluded
            /// In the middle of a write to the log or the database.
            case write
            /// Instead of a sync of the log or the database.
            case sync
            /// In the middle of a write by a checkpoint.
            case checkpointWrite
            /// Instead of a sync by a checkpoint.
            case checkpointSync
        }

        package var place: Place
        /// How many times the process reaches ``place`` until it kills itself there, at least 1.
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
    /// The number of requests that each producer enqueues, one after the other.
    package var requestsPerProducer = 4
    /// Whether requests are enqueued with the durability `full`; if not, with `normal`.
    package var isDurable = true
    /// Whether requests are sent while others are enqueued.
    package var sends = true
    /// Whether the process repeatedly holds and releases all requests of a FIFO lane while requests are enqueued. These
    /// edits are always synced.
    package var edits = true
    /// Whether each request has a webhook, with the URL `<url>/ended/<id>`.
    package var hasWebhooks = false
    /// The ``TestProcessRequest/number`` of each producer's first request.
    package var firstNumber = 0
    /// The maximum random delay of a producer before each request, in milliseconds.
    package var longestPause = 20
    package var seed: UInt64 = 1
    /// The path of the file with the encryption keys; `nil` for none.
    package var encryptionKeyFile: String?
    package var unsyncedWriteLoss: UnsyncedWriteLoss?
    /// When the process kills itself; `nil` if it does not.
    package var crash: Crash?
    /// The number of pages in the log at which SQLite starts an automatic checkpoint; 0 for never.
    package var checkpointPages: Int32 = 1000
    package var fault: Fault?

    package init(directory: String, url: String) {
        self.directory = directory
        self.url = url
    }

    /// The options as a JSON text, which is the process's argument.
    package var argument: String {
        get throws { String(decoding: try JSONEncoder().encode(self), as: UTF8.self) }
    }

    init(argument: String) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(argument.utf8))
    }
}
