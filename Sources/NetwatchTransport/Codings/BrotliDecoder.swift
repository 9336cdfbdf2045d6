internal import NetwatchEventLoop

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
