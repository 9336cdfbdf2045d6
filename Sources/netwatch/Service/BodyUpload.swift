internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// Sends a body to the service. A short body is part of the message; a longer one is uploaded in pieces before it.
struct BodyUpload {
    let client: ServiceClient
    /// Whether the upload is an export file, which may be longer than a request body.
    var isImport = false

    /// Puts a body into a message.
    ///
    /// - Throws: An error if the body cannot be read or the service rejects it. Pieces that were already uploaded are
    ///   removed.
    func attach(_ input: BodyInput?, to message: inout ControlMessage.Send) async throws(CommandError) {
        switch input {
        case nil: return
        case .bytes(let bytes): message.bodyBase64 = Data(bytes).base64EncodedString()
        case .file(let path): try await attach(try BodyReader.opening(path), to: &message)
        case .standardInput: try await attach(try BodyReader.standardInput(), to: &message)
        }
    }

    private func attach(_ reader: BodyReader, to message: inout ControlMessage.Send)
        async throws(CommandError)
    {
        let first = try await reader.read(ControlMessage.maximumPieceBytes)
        if first.count <= StoredBody.maximumInlineBytes {
            message.bodyBase64 = first.base64EncodedString()
        } else {
            message.staged = try await upload(first, then: reader)
        }
    }

    /// Uploads all bytes of a reader.
    ///
    /// Each upload has a new id. Otherwise a command that is repeated could continue an old upload.
    ///
    /// - Parameter first: Bytes that were already read, if any.
    /// - Throws: The errors of ``attach(_:to:)``.
    func upload(
        _ first: Data? = nil,
        then reader: BodyReader
    ) async throws(CommandError) -> ControlMessage.StagedBody {
        var body = ControlMessage.StagedBody(id: UUIDv7.make(), size: 0)
        do throws(CommandError) {
            var piece: Data
            if let first { piece = first } else { piece = try await next(of: reader, body) }
            // An empty input is uploaded as one empty piece. Otherwise the service would not know the upload.
            repeat {
                try await append(piece, to: &body)
                // A short piece is the last one.
                if piece.count < ControlMessage.maximumPieceBytes { break }
                piece = try await next(of: reader, body)
            } while !piece.isEmpty
            return body
        } catch {
            await remove(body)
            throw error
        }
    }

    /// Removes an upload that no request will use, unless the service takes longer than 2 s. Without this, the service
    /// removes it after ten minutes.
    func remove(_ body: ControlMessage.StagedBody?) async {
        guard let body else { return }
        let target = "/v1/bodies/\(body.id)"
        _ = try? await client.delete(target, within: .seconds(2), as: ControlMessage.RemovedBodies.self)
    }

    private func append(
        _ piece: Data,
        to body: inout ControlMessage.StagedBody
    ) async throws(CommandError) {
        let purpose = isImport ? "&for=import" : ""
        let next = body.size + Int64(piece.count)
        do {
            let target = "/v1/bodies/\(body.id)?offset=\(body.size)\(purpose)"
            body.size = try await retryingLonger(for: body).patch(
                target,
                piece,
                as: ControlMessage.Piece.self
            )
            .size
        } catch {
            // This is a success: the connection ended after the service had stored the piece, and the piece was sent
            // again.
            guard error.code == "wrong_offset", error.offset == next else { throw error }
            body.size = next
        }
    }

    // MARK: A busy service

    /// Returns the client for the next calls of an upload. It retries longer than usual while the service is busy,
    /// because giving up would waste the uploaded bytes.
    func retryingLonger(for body: ControlMessage.StagedBody?) -> ServiceClient {
        guard let body, body.size > 0 else { return client }
        return client.retryingLonger { await keepAlive(body) }
    }

    /// Sends an empty piece, which tells the service that the upload is not abandoned.
    private func keepAlive(_ body: ControlMessage.StagedBody) async {
        let target = "/v1/bodies/\(body.id)?offset=\(body.size)"
        _ = try? await client.patch(target, Data(), as: ControlMessage.Piece.self)
    }

    // MARK: Slow input

    /// The interval of the empty pieces. The service keeps an idle upload for ten minutes, but only for ten seconds if
    /// others need the space.
    private static let heartbeat: Duration = .seconds(3)

    /// Reads the next piece. If another program writes it to standard input, this may take any time.
    private func next(
        of reader: BodyReader,
        _ body: ControlMessage.StagedBody
    ) async throws(CommandError) -> Data {
        let heartbeats = Task {
            while body.size > 0, (try? await Task.sleep(for: Self.heartbeat)) != nil {
                // The call runs in a separate task, because cancelling the task of a call closes the connection.
                await Task { await keepAlive(body) }.value
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
