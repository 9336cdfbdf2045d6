internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
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
        case .bytes(let bytes): message.request.body = .data(Data(bytes))
        case .file(let path): try await attach(try BodyReader.opening(path), to: &message)
        case .standardInput: try await attach(try BodyReader.standardInput(), to: &message)
        }
    }

    private func attach(_ reader: BodyReader, to message: inout ControlMessage.Send)
        async throws(CommandError)
    {
        let first = try await reader.read(ControlMessage.maximumPieceBytes)
        if first.count <= StoredBody.maximumInlineBytes {
            message.request.body = .data(first)
        } else {
            let body = try await upload(first, then: reader)
            message.request.body = .staged(id: body.id, size: body.size)
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

/// Reads a body once, from the beginning to the end. Reads block a thread, but not the caller's.
final class BodyReader: Sendable {
    /// The path for functions that take a string. If the name of the file is not UTF-8, this is the path of the open
    /// descriptor (`proc(5)`), which is valid while the reader exists.
    let path: String
    private let file: FileDescriptor
    private let name: String

    private init(_ file: consuming FileDescriptor, path: String? = nil, name: String) {
        let descriptor = file.rawValue
        self.path = path ?? "/proc/self/fd/\(descriptor)"
        self.file = file
        self.name = name
    }

    /// Opens a regular file with the permissions of this process.
    ///
    /// - Parameter limit: The maximum number of bytes.
    /// - Throws: A usage error that names the file and the reason.
    static func opening(
        _ path: ArgumentBytes,
        limit: Int64 = QueueRequest.maximumBodyBytes
    ) throws(CommandError) -> BodyReader {
        guard !path.bytes.isEmpty else { throw InputFile.emptyName }
        // Without `O_NONBLOCK`, opening a pipe would wait for a writer.
        let descriptor = open(path.cString, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw unreadable(path, errnoDescription(errno)) }
        let file = FileDescriptor(owning: descriptor)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw unreadable(path, errnoDescription(errno)) }
        let kind = status.st_mode & S_IFMT
        guard kind != S_IFDIR else { throw unreadable(path, "it is a directory") }
        guard kind == S_IFREG else {
            throw unreadable(path, "it is not a regular file").with(
                hint:
                    "to read from a pipe, redirect it to standard input and give `-` as the file (`@-` for `-d` "
                    + "and `--json`)"
            )
        }
        guard status.st_size <= limit else {
            throw CommandError(
                .usage,
                "`\(path)` has \(status.st_size) bytes; at most \(limit) are accepted"
            )
        }
        return BodyReader(file, path: path.text, name: "`\(path)`")
    }

    static func standardInput() throws(CommandError) -> BodyReader {
        try StandardInput.requireReadable()
        let descriptor = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
        guard descriptor >= 0 else { throw StandardInput.unreadable(errno) }
        return BodyReader(FileDescriptor(owning: descriptor), name: "standard input")
    }

    /// Reads the next bytes. Returns fewer than `count` only at the end.
    func read(_ count: Int) async throws(CommandError) -> Data {
        let result = await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: self.readWaiting(count)) }
        }
        do {
            return try result.get()
        } catch {
            throw CommandError(.usage, "could not read \(name): \(errnoDescription(error.errno))")
        }
    }

    private func readWaiting(_ count: Int) -> Result<Data, SystemError> {
        var data = Data(count: count)
        var filled = 0
        while filled < count {
            let read = data.withUnsafeMutableBytes {
                Glibc.read(file.rawValue, $0.baseAddress! + filled, count - filled)
            }
            if read < 0, errno == EINTR { continue }
            guard read >= 0 else { return .failure(SystemError(call: "read", errno: errno)) }
            if read == 0 { break }
            filled += read
        }
        return .success(data.prefix(filled))
    }

    private static func unreadable(_ path: ArgumentBytes, _ reason: String) -> CommandError {
        CommandError(.usage, "could not read `\(path)`: \(reason)")
    }
}

/// The source of a request body.
enum BodyInput: Hashable {
    case bytes([UInt8])
    case file(ArgumentBytes)
    case standardInput

    /// Parses an argument as curl(1) does: the body itself, `@FILE`, or `@-` for standard input.
    init(data argument: ArgumentBytes) {
        if argument.bytes.first == UInt8(ascii: "@") {
            self.init(file: ArgumentBytes(argument.bytes.dropFirst()))
        } else {
            self = .bytes(argument.bytes)
        }
    }

    /// Parses the name of a file; `-` is standard input.
    init(file name: ArgumentBytes) {
        self = name == ArgumentBytes.standardInput ? .standardInput : .file(name)
    }
}
