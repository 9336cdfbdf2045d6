internal import Foundation
internal import NIOHTTP1
internal import OfflineQueue

/// Routes for bodies that are uploaded in pieces before a request uses them.
extension QueueRoutes {
    var bodyRoutes: [ControlRouter.Route] {
        [
            route(.PATCH, "/v1/bodies/{id}", access: .submit, query: ["offset", "for"]) {
                try await append($0)
            },
            route(.DELETE, "/v1/bodies/{id}", access: .submit) { try await remove($0) },
            route(.DELETE, "/v1/bodies", access: .submit) { try await removeAll($0) },
            route(.GET, "/v1/bodies", access: .submit) { await list($0) },
        ]
    }

    private func append(_ request: ControlRequest) async throws -> ControlResponse {
        let id = id(in: request)
        guard let offset = try request.number("offset", in: 0...Int64.max) else {
            throw Problem(
                .badRequest,
                code: "invalid_offset",
                detail: "`offset` is missing from the query; it must be the number of bytes already uploaded"
            )
        }
        guard request.body.count <= ControlMessage.maximumPieceBytes else {
            throw Problem(
                .payloadTooLarge,
                code: "body_too_large",
                detail: "the piece has \(request.body.count) bytes; "
                    + "at most \(ControlMessage.maximumPieceBytes) are accepted"
            )
        }
        let purpose = try purpose(of: request)
        let submitter = request.caller.submitter(quota)
        let size = try await queue.appendToBody(
            id,
            Data(request.body),
            at: offset,
            for: purpose,
            by: submitter
        )
        return .json(ControlMessage.Piece(id: id, size: size), encoder: ControlMessage.encoder)
    }

    private func purpose(of request: ControlRequest) throws(Problem) -> StagedBodyPurpose {
        guard let text = request.value(of: "for") else { return .request }
        // Only callers with full access may import, and uploads for an import may be longer.
        let accepted = StagedBodyPurpose.allCases.filter { $0 == .request || request.caller.access == .full }
        guard let purpose = accepted.first(where: { $0.rawValue == text }) else {
            throw .malformedQuery("for", text, accepted: accepted.map(\.rawValue).joined(separator: " or "))
        }
        return purpose
    }

    private func bodies(of caller: Caller) async -> [StagedBody] {
        await queue.stagedBodies().filter { caller.owns($0.submitter) }
    }

    private func list(_ request: ControlRequest) async -> ControlResponse {
        let bodies = await bodies(of: request.caller).map { body in
            ControlMessage.StagedBodies.Upload(
                id: body.id,
                size: body.bytes,
                idleSeconds: body.idle / .seconds(1)
            )
        }
        return .json(ControlMessage.StagedBodies(bodies: bodies), encoder: ControlMessage.encoder)
    }

    private func remove(_ request: ControlRequest) async throws -> ControlResponse {
        let id = id(in: request)
        let found = await queue.stagedBodies().first { $0.id == id }
        guard let found else { throw QueueError.unknownStagedBody(id) }
        guard request.caller.owns(found.submitter) else { throw Problem.notSubmitter(id) }
        return Self.message([try await queue.removeStagedBody(id)])
    }

    private func removeAll(_ request: ControlRequest) async throws -> ControlResponse {
        var removed: [StagedBody] = []
        // A request may have used an upload since it was listed.
        for body in await bodies(of: request.caller) {
            removed += [try? await queue.removeStagedBody(body.id)].compactMap(\.self)
        }
        return Self.message(removed)
    }

    private static func message(_ removed: [StagedBody]) -> ControlResponse {
        let bytes = removed.reduce(0) { $0 + $1.bytes }
        return .json(
            ControlMessage.RemovedBodies(bodies: removed.count, bytes: bytes),
            encoder: ControlMessage.encoder
        )
    }
}
