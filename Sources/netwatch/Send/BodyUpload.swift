internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// Hands a body to the service: a short one within the message, a longer one in pieces before it.
struct BodyUpload {
    let client: ServiceClient
    /// An import has a file of its own kind, which may be longer than the body of a request.
    var isImport = false

    /// Puts a body into a message.
    ///
    /// - Throws: When it cannot be read, or the service does not take it. Nothing of it is left in the service then.
    func place(_ input: BodyInput?, in message: inout ControlMessage.Send) async throws(CommandError) {
        switch input {
        case nil: return
        case .text(let text): message.bodyBase64 = Data(text.utf8).base64EncodedString()
        case .file(let path): try await place(try BodyReader.opening(path), in: &message)
        case .standardInput: try await place(try BodyReader.standardInput(), in: &message)
        }
    }

    private func place(_ reader: BodyReader, in message: inout ControlMessage.Send) async throws(CommandError)
    {
        let first = try await reader.read(ControlMessage.maximumPieceBytes)
        if first.count <= OfflineQueue.longestInlineBody {
            message.bodyBase64 = first.base64EncodedString()
        } else {
            message.staged = try await upload(first, then: reader)
        }
    }

    /// Uploads all of a reader's bytes.
    ///
    /// The pieces have an id of their own, so that a repeated command does not continue an old body.
    ///
    /// - Parameter first: What was read before, if anything was.
    /// - Throws: As ``place(_:in:)``.
    func upload(
        _ first: Data? = nil,
        then reader: BodyReader
    ) async throws(CommandError) -> ControlMessage.StagedBody {
        var body = ControlMessage.StagedBody(id: UUIDv7.make(), size: 0)
        do throws(CommandError) {
            var piece: Data
            if let first { piece = first } else { piece = try await next(of: reader, body) }
            while !piece.isEmpty {
                try await append(piece, to: &body)
                // A short piece was the last.
                if piece.count < ControlMessage.maximumPieceBytes { break }
                piece = try await next(of: reader, body)
            }
            return body
        } catch {
            await remove(body)
            throw error
        }
    }

    /// Removes a body that no request will use. The service removes one that nobody removes after ten minutes.
    func remove(_ body: ControlMessage.StagedBody?) async {
        guard let body else { return }
        _ = try? await client.delete("/v1/bodies/\(body.id)", as: ControlMessage.RemovedBodies.self)
    }

    private func append(
        _ piece: Data,
        to body: inout ControlMessage.StagedBody
    ) async throws(CommandError) {
        let purpose = isImport ? "&for=import" : ""
        let next = body.size + Int64(piece.count)
        do {
            let target = "/v1/bodies/\(body.id)?offset=\(body.size)\(purpose)"
            body.size = try await persisting(for: body).patch(target, piece, as: ControlMessage.Piece.self)
                .size
        } catch {
            // The connection ended after the service took the piece, and the piece was sent again.
            guard error.code == "wrong_offset", error.offset == next else { throw error }
            body.size = next
        }
    }

    // MARK: A busy service

    /// The client for what follows in an upload: what was uploaded would have to be uploaded again.
    func persisting(for body: ControlMessage.StagedBody?) -> ServiceClient {
        guard let body, body.size > 0 else { return client }
        return client.persisting { await sayThatItGoesOn(body) }
    }

    /// An empty piece, so that the service keeps what it has.
    private func sayThatItGoesOn(_ body: ControlMessage.StagedBody) async {
        let target = "/v1/bodies/\(body.id)?offset=\(body.size)"
        _ = try? await client.patch(target, Data(), as: ControlMessage.Piece.self)
    }

    // MARK: Slow input

    /// How often the service is told that the upload goes on. It keeps a silent one for ten minutes, and for ten
    /// seconds when others need the room.
    private static let heartbeat: Duration = .seconds(3)

    /// Reads the next piece, which may take as long as a program takes to write it to standard input.
    private func next(
        of reader: BodyReader,
        _ body: ControlMessage.StagedBody
    ) async throws(CommandError) -> Data {
        let heartbeats = Task {
            while body.size > 0, (try? await Task.sleep(for: Self.heartbeat)) != nil {
                // Not cancelled halfway, which would cost the connection.
                await Task { await sayThatItGoesOn(body) }.value
            }
        }
        do throws(CommandError) {
            let piece = try await reader.read(ControlMessage.maximumPieceBytes)
            heartbeats.cancel()
            await heartbeats.value
            return piece
        } catch {
            heartbeats.cancel()
            await heartbeats.value
            throw error
        }
    }
}
