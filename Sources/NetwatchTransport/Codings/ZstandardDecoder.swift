internal import CNetwatchCurl

/// A decoder of `zstd` (RFC 8878), with libzstd. A body may have several frames.
final class ZstandardDecoder: CodingDecoder {
    /// The base-2 logarithm of the largest window of a frame, 8 MiB (RFC 9659). The decoder reserves memory of that
    /// size.
    private static let maximumWindowLog: CInt = 23

    private let library: Zstandard
    private let stream: UnsafeMutableRawPointer
    private(set) var isComplete = false

    /// Returns `nil` if libzstd is not installed.
    init?() {
        guard let library = Zstandard.shared, let stream = library.create() else { return nil }
        (self.library, self.stream) = (library, stream)
        // ZSTD_d_windowLogMax is 100.
        _ = library.setParameter(stream, 100, Self.maximumWindowLog)
    }

    deinit { _ = library.destroy(stream) }

    static var isAvailable: Bool { Zstandard.shared != nil }

    func decode(
        _ input: inout UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(InvalidCoding) -> Int {
        if isComplete, input.isEmpty { return 0 }
        var source = netwatch_zstd_input(bytes: input.baseAddress, count: UInt(input.count), position: 0)
        var target = netwatch_zstd_output(bytes: output.baseAddress, count: UInt(output.count), position: 0)
        let result = library.decode(stream, &target, &source)
        guard library.isError(result) == 0 else { throw InvalidCoding() }
        input.consume(Int(source.position))
        isComplete = result == 0
        return Int(target.position)
    }
}

/// The functions of libzstd.
private struct Zstandard: Sendable {
    typealias Stream = UnsafeMutableRawPointer
    typealias Create = @convention(c) @Sendable () -> Stream?
    typealias SetParameter = @convention(c) @Sendable (Stream, CInt, CInt) -> UInt
    typealias Decode =
        @convention(c) @Sendable (
            Stream, UnsafeMutablePointer<netwatch_zstd_output>, UnsafeMutablePointer<netwatch_zstd_input>
        ) -> UInt
    typealias IsError = @convention(c) @Sendable (UInt) -> CUnsignedInt
    typealias Destroy = @convention(c) @Sendable (Stream) -> UInt

    static let shared = Zstandard()

    let create: Create
    let setParameter: SetParameter
    let decode: Decode
    let isError: IsError
    let destroy: Destroy

    private init?() {
        guard let library = CodingLibrary("libzstd.so.1"),
            let create: Create = library.function("ZSTD_createDStream"),
            let setParameter: SetParameter = library.function("ZSTD_DCtx_setParameter"),
            let decode: Decode = library.function("ZSTD_decompressStream"),
            let isError: IsError = library.function("ZSTD_isError"),
            let destroy: Destroy = library.function("ZSTD_freeDStream")
        else { return nil }
        (self.create, self.setParameter, self.decode) = (create, setParameter, decode)
        (self.isError, self.destroy) = (isError, destroy)
    }
}
