extension ControlMessage {
    /// `GET /v1/queue/export`: one page of an export.
    package struct ExportPage: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// Complete lines, to be written unchanged.
        package var dataBase64: String
        /// The value of `after` for the next page; `nil` on the last page.
        package var next: String?
        /// Requests that could not be exported.
        package var leftOut: [LeftOut]
    }

    package struct LeftOut: Codable, Hashable, Sendable {
        package var id: String
        package var reason: String
    }

    /// `POST /v1/queue/import`: an export that was uploaded in pieces.
    package struct Import: Codable, Hashable, Sendable {
        package var staged: StagedBody

        package init(staged: StagedBody) {
            self.staged = staged
        }
    }

    /// The response to ``Import``.
    package struct Imported: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var imported: Int
        package var known: Int
        package var superseded: Int
    }

    /// `GET /v1/queue/verify`.
    package struct Verification: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// Whether the store is sound: no finding loses a request.
        package var sound: Bool
        package var requests: Int
        package var files: Int
        package var findingCount: Int
        /// At most 1000 findings.
        package var findings: [Finding]
    }

    package struct Finding: Codable, Hashable, Sendable {
        package var kind: String
        package var subject: String
        package var message: String
    }
}
