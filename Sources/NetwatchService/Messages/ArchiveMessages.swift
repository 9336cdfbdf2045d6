package import Foundation

extension ControlMessage {
    /// The response to `GET /v1/queue/export`: one page of an export.
    package struct ExportPage: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// Base64 of complete lines of the export. Clients append the decoded lines to the file unchanged.
        package var dataBase64: String
        /// The value of `after` for the next page; `nil` on the last page.
        package var next: String?
        /// Requests that could not be exported.
        package var leftOut: [LeftOut]
    }

    /// A request that was not exported or imported.
    package struct LeftOut: Codable, Hashable, Sendable {
        package var id: String
        package var reason: String
    }

    /// The body of `POST /v1/queue/import`: names an export that was uploaded in pieces.
    package struct Import: Codable, Hashable, Sendable {
        package var staged: StagedBody
        /// Whether the submitters in the export are kept. Default `nil`: the requests belong to the user who imports.
        package var keepSubmitters: Bool?

        package init(staged: StagedBody, keepSubmitters: Bool? = nil) {
            self.staged = staged
            self.keepSubmitters = keepSubmitters
        }
    }

    /// The response to `POST /v1/queue/import`.
    package struct Imported: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The number of requests that were added to the queue.
        package var imported: Int
        /// The number of requests that the queue already contained.
        package var known: Int
        /// The number of requests that were not imported because their ids belong to other requests, and the first 1000
        /// of them. `nil` if there are none.
        package var conflictCount: Int?
        package var conflicts: [LeftOut]?
        /// The number of requests that were left out, because a newer request with the same replace key is waiting.
        package var superseded: Int
    }

    /// The response to `GET /v1/queue/verify`.
    package struct Verification: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// Whether every request was checked, and there are no findings, or only harmless ones (the kinds `orphan` and
        /// `log_tail`).
        package var sound: Bool
        /// Whether a finding is damage. The kinds `orphan`, `log_tail` and `encryption_key` are not.
        package var damaged: Bool
        /// The number of requests that were checked.
        package var requests: Int
        /// The number of body files that were checked.
        package var files: Int
        /// The number of requests that could not be checked without their encryption key. `nil` if there are none.
        package var unchecked: Int?
        package var findingCount: Int
        /// At most 1000 findings.
        package var findings: [Finding]
    }

    /// The response to `GET /v1/queue/check`.
    package struct StoreCheck: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// Whether the whole structure of the database was checked without a finding. If not, and if there is no
        /// damage, the check has reached its time limit.
        package var complete: Bool
        /// The first damage; `nil` if none was found.
        package var damage: String?
        /// What the scans of the store have found; `nil` before the first one has begun.
        package var scan: Scan?
    }

    /// The scans of the store in the background.
    package struct Scan: Codable, Hashable, Sendable {
        /// When the last complete scan ended; `nil` if none has ended.
        package var completed: Date?
        /// When the scan in progress began; `nil` if none is in progress.
        package var began: Date?
        /// The number of problems that the last complete scan and the scan in progress have found. All are damage.
        package var findingCount: Int
        /// The first problems, at most 20. `nil` in a status, which every user may read.
        package var findings: [Finding]?
    }

    package struct Finding: Codable, Hashable, Sendable {
        package var kind: String
        /// The request, file or part of the database that the finding is about.
        package var subject: String
        package var message: String
    }
}
