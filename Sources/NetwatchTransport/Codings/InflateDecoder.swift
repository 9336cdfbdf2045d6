internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A decoder of `gzip` and `deflate`, with zlib.
///
/// A gzip body may have several members (RFC 1952 §2.2). A deflate body should have the header of zlib (RFC 9110
/// §8.4.1.2), but some servers omit it.
final class InflateDecoder: CodingDecoder {
    enum Format { case gzip, deflate }

    private let format: Format
    private let library: Zlib
    /// zlib requires that its address does not change.
    private let stream = UnsafeMutablePointer<netwatch_z_stream>.allocate(capacity: 1)
    private var hasBegun = false
    /// The first byte of a deflate body, until the second one shows whether they are the header of zlib.
    private var firstByte: UInt8?
    private(set) var isComplete = false

    /// Returns `nil` if zlib is not installed.
    init?(_ format: Format) {
        guard let library = Zlib.shared else { return nil }
        self.format = format
        self.library = library
        stream.initialize(to: netwatch_z_stream())
    }

    deinit {
        if hasBegun { _ = library.end(stream) }
        stream.deallocate()
    }

    static var isAvailable: Bool { Zlib.shared != nil }

    func decode(
        _ input: inout UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(InvalidCoding) -> Int {
        if isComplete {
            guard !input.isEmpty else { return 0 }
            try beginMember()
        }
        if !hasBegun {
            guard let first = input.first else { return 0 }
            guard try begin(first, input.dropFirst().first) else {
                input.consume(1)
                return 0
            }
        }
        guard var first = firstByte else { return try inflate(&input, into: output) }
        firstByte = nil
        // One byte is decoded to nothing, so this call takes it.
        try withUnsafeBytes(of: &first) { bytes throws(InvalidCoding) in
            var bytes = bytes
            _ = try inflate(&bytes, into: output)
        }
        return try inflate(&input, into: output)
    }

    /// Begins the body, if enough of it is known. Otherwise remembers its first byte and returns `false`.
    private func begin(_ first: UInt8, _ second: UInt8?) throws(InvalidCoding) -> Bool {
        switch format {
        case .gzip: try begin(windowBits: 31)
        case .deflate:
            guard let header = firstByte.map({ ($0, first) }) ?? second.map({ (first, $0) }) else {
                firstByte = first
                return false
            }
            try begin(windowBits: Self.isZlibHeader(header.0, header.1) ? 15 : -15)
        }
        return true
    }

    /// Begins with the format that zlib derives from the number (`inflateInit2`): 15 for zlib's own, -15 for a body
    /// without a header, 31 for gzip.
    private func begin(windowBits: CInt) throws(InvalidCoding) {
        // zlib checks only the first digit of the version.
        let size = CInt(MemoryLayout<netwatch_z_stream>.size)
        guard library.begin(stream, windowBits, "1", size) == 0 else { throw InvalidCoding() }
        hasBegun = true
    }

    /// Returns whether the bytes are a header of zlib (RFC 1950 §2.2).
    private static func isZlibHeader(_ first: UInt8, _ second: UInt8) -> Bool {
        first & 0x0f == 8 && (Int(first) << 8 | Int(second)).isMultiple(of: 31)
    }

    private func beginMember() throws(InvalidCoding) {
        guard format == .gzip, library.reset(stream) == 0 else { throw InvalidCoding() }
        isComplete = false
    }

    private func inflate(
        _ input: inout UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(InvalidCoding) -> Int {
        stream.pointee.input = input.baseAddress
        stream.pointee.input_count = UInt32(input.count)
        stream.pointee.output = output.baseAddress
        stream.pointee.output_count = UInt32(output.count)
        let result = library.inflate(stream, 0)
        input.consume(input.count - Int(stream.pointee.input_count))
        // Z_STREAM_END is 1. Z_BUF_ERROR is -5: zlib needs more input.
        guard [0, 1, -5].contains(result) else { throw InvalidCoding() }
        isComplete = result == 1
        return output.count - Int(stream.pointee.output_count)
    }
}

/// The functions of zlib.
private struct Zlib: Sendable {
    typealias Stream = UnsafeMutablePointer<netwatch_z_stream>
    typealias Begin = @convention(c) @Sendable (Stream, CInt, UnsafePointer<CChar>, CInt) -> CInt
    typealias Inflate = @convention(c) @Sendable (Stream, CInt) -> CInt
    typealias Reset = @convention(c) @Sendable (Stream) -> CInt

    static let shared = Zlib()

    let begin: Begin
    let inflate: Inflate
    let reset: Reset
    let end: Reset

    private init?() {
        guard let library = SharedLibrary("libz.so.1"),
            let begin: Begin = library.function("inflateInit2_"),
            let inflate: Inflate = library.function("inflate"),
            let reset: Reset = library.function("inflateReset"),
            let end: Reset = library.function("inflateEnd")
        else { return nil }
        (self.begin, self.inflate, self.reset, self.end) = (begin, inflate, reset, end)
    }
}
