internal import Foundation
internal import NIOHTTP1
internal import OfflineQueue

/// Routes for bodies that are uploaded in pieces before a request uses them.
extension QueueRoutes {
    var bodyRoutes: [ControlRouter.Route] {
        [
            route(.PATCH, "/v1/bodies/{id}", query: ["offset", "for"]) { try await append($0) },
            route(.DELETE, "/v1/bodies/{id}") { try await remove($0) },
            route(.DELETE, "/v1/bodies") { _ in
                Self.message(await queue.removeStagedBodies())
            },
            route(.GET, "/v1/bodies") { _ in await list() },
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
        let size = try await queue.appendToBody(id, Data(request.body), at: offset, for: purpose)
        return .json(ControlMessage.Piece(id: id, size: size), encoder: ControlMessage.encoder)
    }

    private func purpose(of request: ControlRequest) throws(Problem) -> StagedBodyPurpose {
        guard let text = request.value(of: "for") else { return .request }
        guard let purpose = StagedBodyPurpose(rawValue: text) else {
            let accepted = StagedBodyPurpose.allCases.map(\.rawValue).joined(separator: " or ")
            throw .malformedQuery("for", text, accepted: accepted)
        }
        return purpose
    }

    private func list() async -> ControlResponse {
        let bodies = await queue.stagedBodies().map { body in
            ControlMessage.StagedBodies.Upload(
                id: body.id,
                size: body.bytes,
                idleSeconds: body.idle / .seconds(1)
            )
        }
        return .json(ControlMessage.StagedBodies(bodies: bodies), encoder: ControlMessage.encoder)
    }

    private func remove(_ request: ControlRequest) async throws -> ControlResponse {
        Self.message([try await queue.removeStagedBody(id(in: request))])
    }

    private static func message(_ removed: [StagedBody]) -> ControlResponse {
        let bytes = removed.reduce(0) { $0 + $1.bytes }
        return .json(
            ControlMessage.RemovedBodies(bodies: removed.count, bytes: bytes),
            encoder: ControlMessage.encoder
        )
    }
}
