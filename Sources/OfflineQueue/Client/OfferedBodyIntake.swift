internal import Dispatch
internal import Foundation
internal import NetwatchTransport

/// Takes a body that can be read only once into a queue's spool.
struct OfferedBodyIntake {
    private static let pieceSize = 256 * 1024

    private let queue: OfflineQueue
    private let name = "stream-\(UUIDv7.make())"

    init(_ queue: OfflineQueue) {
        self.queue = queue
    }

    /// Reads the body and adds it to the queue's spool.
    ///
    /// - Throws: ``QueueError``, as ``OfflineQueue/appendToBody(_:_:at:for:)`` does. The error of the reader.
    func spooled(_ reader: any BlockingReader) async throws -> QueueRequest.Body {
        let thread = DispatchQueue(label: "netwatch.queue.stream")
        var size: Int64 = 0
        do {
            while true {
                let piece = try await thread.run { try Self.read(reader) }
                guard !piece.isEmpty else { break }
                try Task.checkCancellation()
                size = try await queue.appendToBody(name, piece, at: size)
            }
        } catch {
            _ = try? await queue.removeStagedBody(name)
            throw error
        }
        return size == 0 ? .data(Data()) : .staged(id: name, size: size)
    }

    private static func read(_ reader: any BlockingReader) throws -> Data {
        var piece = Data(count: pieceSize)
        let count = try piece.withUnsafeMutableBytes { try reader.read(into: $0) }
        return piece.prefix(count)
    }
}
