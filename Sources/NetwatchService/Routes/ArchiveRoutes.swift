internal import Foundation
internal import NIOHTTP1
internal import NetwatchEventLoop
internal import OfflineQueue

/// Routes for the whole store: export, import and verification.
extension QueueRoutes {
    var archiveRoutes: [ControlRouter.Route] {
        [
            route(.GET, "/v1/queue/export", access: .full, query: ["dead", "after"]) { try await export($0) },
            route(.POST, "/v1/queue/import", access: .full, classify: { _ in .wait }) {
                try await importStaged($0)
            },
            route(.GET, "/v1/queue/verify", access: .full, classify: { _ in .wait }) { _ in try await verify()
            },
            route(.GET, "/v1/queue/check", access: .full, classify: { _ in .wait }) { _ in try await check()
            },
        ]
    }

    private func export(_ request: ControlRequest) async throws -> ControlResponse {
        var cursor: ExportCursor?
        if let text = request.value(of: "after") {
            guard let found = ExportCursor(text) else {
                throw Problem.malformedQuery("after", text, accepted: "the `next` of the previous page")
            }
            cursor = found
        }
        let includesDead = try request.flag("dead") ?? true
        return try await largeResponses.run(for: request.caller.user) { [cursor] in
            let page = try await queue.exportPage(after: cursor, includingDead: includesDead)
            let message = ControlMessage.ExportPage(
                dataBase64: page.data.base64EncodedString(),
                next: page.next?.description,
                leftOut: page.leftOut.map { ControlMessage.LeftOut(id: $0.id, reason: $0.reason) }
            )
            return .json(message, encoder: ControlMessage.encoder)
        }
    }

    private func importStaged(_ request: ControlRequest) async throws -> ControlResponse {
        let message = try request.message(ControlMessage.Import.self)
        // The route requires full access, so the caller may also import requests of others.
        let submitters =
            message.keepSubmitters == true ? ImportedSubmitters.original : .user(request.caller.user)
        let staged = message.staged
        let result = try await queue.importStaged(staged.id, size: staged.size, as: submitters)
        return .json(ControlMessage.Imported(result), encoder: ControlMessage.encoder)
    }

    /// The maximum duration of a quick check, during which SQLite cannot restart the database's log.
    private static let longestCheck = Duration.seconds(2)

    private func check() async throws -> ControlResponse {
        let found = try await quickChecks.run { try await queue.quickCheck(within: Self.longestCheck) }
        var message =
            switch found {
            case .noDamage: ControlMessage.StoreCheck(complete: true)
            case .damaged(let damage): ControlMessage.StoreCheck(complete: false, damage: damage)
            case .unfinished: ControlMessage.StoreCheck(complete: false)
            }
        message.scan = ControlMessage.Scan(queue.scan, withTexts: true)
        return .json(message, encoder: ControlMessage.encoder)
    }

    private func verify() async throws -> ControlResponse {
        let found = try await verifications.run { try await queue.verify() }
        let message = ControlMessage.Verification(
            sound: found.isSound,
            damaged: found.isDamaged,
            requests: found.requests,
            files: found.files,
            unchecked: found.unchecked > 0 ? found.unchecked : nil,
            findingCount: found.findingCount,
            findings: found.findings.map(ControlMessage.Finding.init)
        )
        return .json(message, encoder: ControlMessage.encoder)
    }
}

extension ControlMessage.Finding {
    fileprivate init(_ finding: QueueVerification.Finding) {
        self.init(kind: finding.kind.rawValue, subject: finding.subject, message: finding.message)
    }
}

extension ControlMessage.Scan {
    /// Returns `nil` before the first scan has begun.
    ///
    /// - Parameter withTexts: Whether the message contains the findings, which name requests of all users.
    init?(_ scan: QueueScan, withTexts: Bool) {
        guard scan != QueueScan() else { return nil }
        self.init(
            completed: scan.completed,
            began: scan.began,
            findingCount: scan.findingCount,
            findings: withTexts ? scan.findings.map(ControlMessage.Finding.init) : nil
        )
    }
}

extension ControlMessage.Imported {
    init(_ result: ImportResult) {
        let conflicts = result.conflicts.map { ControlMessage.LeftOut(id: $0.id, reason: $0.reason) }
        self.init(
            imported: result.imported,
            known: result.known,
            conflictCount: result.conflictCount > 0 ? result.conflictCount : nil,
            conflicts: conflicts.isEmpty ? nil : conflicts,
            superseded: result.superseded
        )
    }
}
