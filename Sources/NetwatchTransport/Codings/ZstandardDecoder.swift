internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A decoder of `zstd` (RFC 8878), with libzstd. A body may have several frames.
///
/// libzstd may also decode the formats that preceded RFC 8878. They are refused: they are not the coding `zstd`, and
/// libzstd does not limit their windows to ``maximumWindowLog``.
final class ZstandardDecoder: CodingDecoder {
    /// The base-2 logarithm of the largest window of a frame, 8 MiB (RFC 9659). The decoder reserves memory of that
    /// size. libzstd refuses a frame with a larger window when it has read the frame's header.
    private static let maximumWindowLog: CInt = 23

    private let library: Zstandard
    private let stream: UnsafeMutableRawPointer
    private var isInFrame = false
    private(set) var isComplete = false

    /// Returns `nil` if libzstd is not installed, or cannot limit the window.
    init?() {
        guard let library = Zstandard.shared, let stream = library.create() else { return nil }
        (self.library, self.stream) = (library, stream)
        // ZSTD_d_windowLogMax is 100.
        let result = library.setParameter(stream, 100, Self.maximumWindowLog)
        guard library.isError(result) == 0 else { return nil }
    }

    deinit { _ = library.destroy(stream) }

    static var isAvailable: Bool { Zstandard.shared != nil }

    func decode(
        _ input: inout UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(InvalidCoding) -> Int {
        if !isInFrame {
            guard let first = input.first else { return 0 }
            guard Self.beginsFrame(first) else { throw InvalidCoding() }
            isInFrame = true
        }
        var source = netwatch_zstd_input(bytes: input.baseAddress, count: UInt(input.count), position: 0)
        var target = netwatch_zstd_output(bytes: output.baseAddress, count: UInt(output.count), position: 0)
        let result = library.decode(stream, &target, &source)
        guard library.isError(result) == 0 else { throw InvalidCoding() }
        input.consume(Int(source.position))
        isComplete = result == 0
        isInFrame = !isComplete
        return Int(target.position)
    }

    /// Returns whether a frame of RFC 8878 may begin with the byte: 0x28 for data, 0x50 to 0x5F for a frame to skip
    /// (RFC 8878 §3.1). The magic numbers of older formats begin with other bytes.
    private static func beginsFrame(_ byte: UInt8) -> Bool {
        byte == 0x28 || (0x50...0x5f).contains(byte)
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
        guard let library = SharedLibrary("libzstd.so.1"),
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
