internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// Hands a body over to the service: short ones within the message, others in pieces before it.
struct BodyUpload {
    let client: ServiceClient

    /// Puts a body into a message.
    ///
    /// - Throws: When it cannot be read, or the service does not take it.
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

    /// Hands over all of a reader's bytes.
    ///
    /// The pieces have a name of their own, so that a repeated command does not go on with an old body.
    ///
    /// - Parameter first: What was read before, if anything was.
    func upload(
        _ first: Data? = nil,
        then reader: BodyReader
    ) async throws(CommandError) -> ControlMessage.StagedBody {
        let id = UUIDv7.make()
        var (piece, size): (Data, Int64) = (first ?? Data(), 0)
        if first == nil { piece = try await reader.read(ControlMessage.maximumPieceBytes) }
        while !piece.isEmpty {
            let taken = try await client.patch(
                "/v1/bodies/\(id)?offset=\(size)",
                piece,
                as: ControlMessage.Piece.self
            )
            size = taken.size
            // A short piece was the last.
            if piece.count < ControlMessage.maximumPieceBytes { break }
            piece = try await reader.read(ControlMessage.maximumPieceBytes)
        }
        return ControlMessage.StagedBody(id: id, size: size)
    }
}
