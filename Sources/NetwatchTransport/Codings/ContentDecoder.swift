internal import NetwatchEventLoop

/// A decoder of a response body with one or more content codings.
///
/// libcurl's own decoders are not used: libcurl 7.88.1 takes a truncated body for a complete one, and reports bytes
/// after the end of a gzip body as a failed write.
final class ContentDecoder {
    /// A body that cannot be decoded.
    enum Failure: Error, Equatable {
        /// The head names an unknown coding, or more than ``maximumCodings``. The value is the `Content-Encoding`.
        case unsupported(String)
        /// The body is not valid in its codings. The value is the `Content-Encoding`.
        case invalid(String)
    }

    /// The maximum number of codings of a body. Servers apply one. A proxy that compresses a body again makes it two.
    ///
    /// This limits the memory of a body's decoders to less than 60 MiB. A decoder of `br` has taken 24.0 MiB with
    /// libbrotli 1.0.9: while it enlarges its window to the maximum of 16 MiB (RFC 7932 §9.1), the old window of 8 MiB
    /// exists, too. A hostile body can add about 4 MiB for prefix codes. A decoder of `zstd` needs 9 MiB
    /// (``ZstandardDecoder``), and one of `gzip` or `deflate` less than 1 MiB.
    static let maximumCodings = 2
    /// The number of decoded bytes that are passed on at a time.
    private static let bufferSize = 16 * 1024

    /// The values of `Content-Encoding`, joined.
    let codings: String
    /// The decoders in the order in which they are applied; `nil` until the first bytes arrive.
    private var decoders: [any CodingDecoder]?

    /// Returns `nil` if the body has no coding.
    ///
    /// - Parameter values: The values of all `Content-Encoding` fields.
    init?(_ values: [String]) {
        codings = values.joined(separator: ", ")
        if names.isEmpty { return nil }
    }

    /// The names of the codings that can be decoded, as used in `Accept-Encoding`.
    static let supported = [
        ("br", BrotliDecoder.isAvailable), ("gzip", InflateDecoder.isAvailable),
        ("deflate", InflateDecoder.isAvailable), ("zstd", ZstandardDecoder.isAvailable),
    ].filter(\.1).map(\.0)

    /// Whether the body is complete. A body without any bytes is, because HEAD and an empty response have none.
    var isComplete: Bool { decoders?.allSatisfy(\.isComplete) ?? true }

    /// Decodes the next bytes of the body.
    ///
    /// - Parameters:
    ///   - bytes: The bytes, at least one.
    ///   - count: Called with the number of bytes that a decoder has produced. With several codings, all of them count:
    ///     the last decoder may produce few bytes from many. If it returns `false`, the rest is not decoded.
    ///   - emit: Called with each part of the decoded bytes. If it returns `false`, the rest is not decoded.
    /// - Throws: ``Failure``.
    func decode(
        _ bytes: UnsafeRawBufferPointer,
        counting count: (Int) -> Bool,
        _ emit: (UnsafeRawBufferPointer) -> Bool
    ) throws {
        let decoders = try decoders ?? makeDecoders()
        self.decoders = decoders
        do {
            _ = try decode(bytes, decoders[...], count, emit)
        } catch is InvalidCoding {
            throw Failure.invalid(codings)
        }
    }

    private func decode(
        _ bytes: UnsafeRawBufferPointer,
        _ decoders: ArraySlice<any CodingDecoder>,
        _ isAccepted: (Int) -> Bool,
        _ emit: (UnsafeRawBufferPointer) -> Bool
    ) throws -> Bool {
        guard let decoder = decoders.first else { return emit(bytes) }
        return try withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 1) { buffer in
            var input = bytes
            var count = 0
            repeat {
                let unread = input.count
                count = try decoder.decode(&input, into: buffer)
                // A decoder that makes no progress would block the loop.
                guard count > 0 || input.isEmpty || input.count < unread else { throw InvalidCoding() }
                guard isAccepted(count) else { return false }
                let decoded = UnsafeRawBufferPointer(rebasing: buffer.prefix(count))
                if count > 0, try !decode(decoded, decoders.dropFirst(), isAccepted, emit) { return false }
            } while !input.isEmpty || count == buffer.count
            return true
        }
    }

    /// The names of the codings in lower case, in the order in which they were applied.
    private var names: [String] {
        codings.listElements.map { $0.lowercased() }
            // Some servers write `none` for `identity`, and so does libcurl.
            .filter { !["", "identity", "none"].contains($0) }
    }

    private func makeDecoders() throws -> [any CodingDecoder] {
        let decoders = names.reversed().map(Self.decoder)
        guard decoders.count <= Self.maximumCodings, !decoders.contains(where: { $0 == nil }) else {
            throw Failure.unsupported(codings)
        }
        return decoders.compactMap(\.self)
    }

    private static func decoder(of name: String) -> (any CodingDecoder)? {
        switch name {
        case "gzip", "x-gzip": InflateDecoder(.gzip)
        case "deflate": InflateDecoder(.deflate)
        case "br": BrotliDecoder()
        case "zstd": ZstandardDecoder()
        default: nil
        }
    }
}

/// A decoder of one content coding (RFC 9110 §8.4.1). It decodes one body.
protocol CodingDecoder: AnyObject {
    /// Whether the bytes so far are a complete body.
    var isComplete: Bool { get }

    /// Decodes as many bytes as the buffer has room for. May be called with empty input, to get the rest of the decoded
    /// bytes. Decodes at least one byte of other input, or fills the buffer.
    ///
    /// - Parameters:
    ///   - input: The next bytes. The function removes those that it has decoded.
    ///   - output: The buffer for the decoded bytes.
    /// - Returns: The number of decoded bytes in the buffer.
    /// - Throws: ``InvalidCoding`` if the bytes are invalid, or follow the end of the body.
    func decode(
        _ input: inout UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(InvalidCoding) -> Int
}

/// The error for bytes that cannot be decoded.
struct InvalidCoding: Error {}

extension UnsafeRawBufferPointer {
    /// Removes bytes from the beginning.
    mutating func consume(_ count: Int) {
        self = UnsafeRawBufferPointer(rebasing: dropFirst(count))
    }
}

/// A decoder of `br` (RFC 7932), with libbrotlidec.
final class BrotliDecoder: CodingDecoder {
    private let library: Brotli
    private let state: UnsafeMutableRawPointer
    private(set) var isComplete = false

    /// Returns `nil` if libbrotlidec is not installed.
    init?() {
        guard let library = Brotli.shared, let state = library.create(nil, nil, nil) else { return nil }
        (self.library, self.state) = (library, state)
    }

    deinit { library.destroy(state) }

    static var isAvailable: Bool { Brotli.shared != nil }

    func decode(
        _ input: inout UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(InvalidCoding) -> Int {
        if isComplete {
            guard input.isEmpty else { throw InvalidCoding() }
            return 0
        }
        var (unread, next) = (input.count, input.baseAddress)
        var (room, place) = (output.count, output.baseAddress)
        // BROTLI_DECODER_RESULT_ERROR is 0, BROTLI_DECODER_RESULT_SUCCESS is 1.
        let result = library.decode(state, &unread, &next, &room, &place, nil)
        guard result != 0 else { throw InvalidCoding() }
        input.consume(input.count - unread)
        isComplete = result == 1
        return output.count - room
    }
}

/// The functions of libbrotlidec.
private struct Brotli: Sendable {
    typealias State = UnsafeMutableRawPointer
    typealias Create = @convention(c) @Sendable (State?, State?, State?) -> State?
    typealias Decode =
        @convention(c) @Sendable (
            State, UnsafeMutablePointer<Int>, UnsafeMutablePointer<UnsafeRawPointer?>,
            UnsafeMutablePointer<Int>,
            UnsafeMutablePointer<UnsafeMutableRawPointer?>, UnsafeMutablePointer<Int>?
        ) -> CInt
    typealias Destroy = @convention(c) @Sendable (State) -> Void

    static let shared = Brotli()

    let create: Create
    let decode: Decode
    let destroy: Destroy

    private init?() {
        guard let library = SharedLibrary("libbrotlidec.so.1"),
            let create: Create = library.function("BrotliDecoderCreateInstance"),
            let decode: Decode = library.function("BrotliDecoderDecompressStream"),
            let destroy: Destroy = library.function("BrotliDecoderDestroyInstance")
        else { return nil }
        (self.create, self.decode, self.destroy) = (create, decode, destroy)
    }
}
