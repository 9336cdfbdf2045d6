public import Foundation

/// A body of `multipart/form-data` (RFC 7578), as HTML forms send it.
///
/// ```swift
/// form.append(Data("Ada".utf8), withName: "name")
/// form.append(photoURL, withName: "photo")
/// ```
///
/// Parts are sent in the order they were added. What is wrong with a part, a missing file for example, is
/// thrown by ``encode()`` and ``writeEncodedData(to:)``; the first error stands, and parts added after it
/// are dropped.
///
/// Use it from one thread at a time. Both encoders block the thread while they read files and streams, so
/// keep them off the main queue and off Swift's cooperative pool.
public final class MultipartFormData {
    /// What separates the parts. 64 random bits keep it from occurring in one of them.
    public let boundary: String

    private var parts: [MultipartPart] = []
    private var firstError: (any Error)?

    /// Makes an empty form with a random boundary, `netwatch.boundary.` and 16 hexadecimal digits.
    public convenience init() {
        self.init(boundary: MultipartBoundary.random())
    }

    /// Makes an empty form.
    ///
    /// - Parameter boundary: What separates the parts: a token (RFC 9110 §5.6.2) of at most 70 characters
    ///   (RFC 2046 §5.1.1) that occurs in no part, which is not checked. Anything else is
    ///   ``AFError/MultipartEncodingFailureReason/bodyPartHeaderInvalid(name:value:)`` when the form is encoded.
    public init(boundary: String) {
        self.boundary = boundary
        guard !MultipartBoundary(boundary).isValid else { return }
        let reason = AFError.MultipartEncodingFailureReason.bodyPartHeaderInvalid(
            name: "boundary",
            value: boundary
        )
        firstError = AFError.multipartEncodingFailed(reason: reason)
    }

    /// The value of the request's `Content-Type` field.
    public var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// How many bytes the contents of all parts have together, without what stands around them.
    ///
    /// Stays at `UInt64.max` when streams were announced with more than that.
    public var contentLength: UInt64 {
        parts.reduce(0) { $0.addingUpToMaximum($1.source.length) }
    }

    /// How many bytes the whole body has. Known without reading a part.
    package var encodedLength: UInt64 {
        let framing = MultipartBoundary(boundary)
        let end = framing.closing(afterParts: parts.count).count
        return parts.enumerated().reduce(UInt64(end)) { sum, next in
            let (index, part) = next
            return sum.addingUpToMaximum(UInt64(framing.opening(ofPart: index).count + part.head.count))
                .addingUpToMaximum(part.source.length)
        }
    }
}

// MARK: Adding parts

extension MultipartFormData {
    /// Adds a part from memory.
    ///
    /// A line break or quotation mark in a name is written as `%0D`, `%0A` or `%22`, as browsers do
    /// (WHATWG HTML, "multipart/form-data encoding algorithm"). NUL in a name, and a control character in a
    /// type, are ``AFError/MultipartEncodingFailureReason/bodyPartHeaderInvalid(name:value:)``.
    ///
    /// - Parameters:
    ///   - data: The content.
    ///   - name: The name of the form's field.
    ///   - fileName: The file name that the server is told. Default none.
    ///   - mimeType: The content type. Default none, which stands for plain text (RFC 7578 §4.4).
    public func append(
        _ data: Data,
        withName name: String,
        fileName: String? = nil,
        mimeType: String? = nil
    ) {
        add {
            MultipartPart(
                head: try MultipartHead.of(name: name, fileName: fileName, mimeType: mimeType),
                source: .data(data)
            )
        }
    }

    /// Adds a file under its own name, with the content type that its extension stands for,
    /// `application/octet-stream` if it is none that is known.
    ///
    /// - Parameters:
    ///   - fileURL: The file; see ``append(_:withName:fileName:mimeType:)-(URL,_,_,_)``.
    ///   - name: The name of the form's field.
    public func append(_ fileURL: URL, withName name: String) {
        append(
            fileURL,
            withName: name,
            fileName: fileURL.lastPathComponent,
            mimeType: MIMEType.of(pathExtension: fileURL.pathExtension)
        )
    }

    /// Adds a file.
    ///
    /// It is looked at now and read when the form is encoded. Then it must have the size it has now.
    ///
    /// - Parameters:
    ///   - fileURL: A regular file, which may be read.
    ///   - name: The name of the form's field.
    ///   - fileName: The file name that the server is told. An empty one is
    ///     ``AFError/MultipartEncodingFailureReason/bodyPartFilenameInvalid(in:)``.
    ///   - mimeType: The content type.
    public func append(_ fileURL: URL, withName name: String, fileName: String, mimeType: String) {
        add {
            let file = try MultipartFile(fileURL)
            guard !fileName.isEmpty else {
                throw AFError.multipartEncodingFailed(reason: .bodyPartFilenameInvalid(in: fileURL))
            }
            let head = try MultipartHead.of(name: name, fileName: fileName, mimeType: mimeType)
            return MultipartPart(head: head, source: .file(file))
        }
    }

    /// Adds what a stream gives.
    ///
    /// - Parameters:
    ///   - stream: Opened, read to its end and closed when the form is encoded. A form with a stream can
    ///     be encoded once; after that encoding it fails with `URLError.requestBodyStreamExhausted`
    ///     underneath.
    ///   - length: How many bytes the stream gives before it ends, neither more nor less.
    ///   - name: The name of the form's field.
    ///   - fileName: The file name that the server is told.
    ///   - mimeType: The content type.
    public func append(
        _ stream: InputStream,
        withLength length: UInt64,
        name: String,
        fileName: String,
        mimeType: String
    ) {
        add {
            MultipartPart(
                head: try MultipartHead.of(name: name, fileName: fileName, mimeType: mimeType),
                source: .stream(MultipartStream(stream, length: length, name: name))
            )
        }
    }

    /// Adds what a stream gives, with header fields of your own.
    ///
    /// - Parameters:
    ///   - stream: As in ``append(_:withLength:name:fileName:mimeType:)``.
    ///   - length: How many bytes the stream gives before it ends, neither more nor less.
    ///   - headers: The part's header fields, which are written as they are. RFC 7578 §4.2 wants a
    ///     `Content-Disposition` with a name. A name that is no token, and a control character in a value,
    ///     are ``AFError/MultipartEncodingFailureReason/bodyPartHeaderInvalid(name:value:)``.
    public func append(_ stream: InputStream, withLength length: UInt64, headers: HTTPHeaders) {
        add {
            let disposition = headers.first { $0.key.lowercased() == "content-disposition" }
            let name = disposition?.value ?? "stream"
            return MultipartPart(
                head: try MultipartHead.of(headers),
                source: .stream(MultipartStream(stream, length: length, name: name))
            )
        }
    }

    private func add(_ makePart: () throws -> MultipartPart) {
        guard firstError == nil else { return }
        do { parts.append(try makePart()) } catch { firstError = error }
    }
}

// MARK: Encoding

extension MultipartFormData {
    /// Encodes the form in memory.
    ///
    /// A form without parts is its last boundary alone, as browsers send it. Without streams a form can be
    /// encoded as often as you like, to the same bytes.
    ///
    /// - Returns: The body.
    /// - Throws: ``AFError/multipartEncodingFailed(reason:)`` with what was wrong with the first bad part, or
    ///   with what became of a file or a stream since: it is gone, is no file any more, cannot be read, or has
    ///   more or fewer bytes than before (``AFError/UnexpectedInputStreamLength``).
    public func encode() throws -> Data {
        var body = Data()
        // Announced lengths are hints here: a stream may say anything.
        body.reserveCapacity(Int(min(encodedLength, 1 << 24)))
        try write { body.append(contentsOf: $0) }
        return body
    }

    /// Encodes the form into a new file, 64 KiB at a time, so that its parts need not fit into memory.
    ///
    /// On an error no file is left behind.
    ///
    /// - Parameter fileURL: Where to make the file, which only its owner may read (mode 0600).
    /// - Throws: What ``encode()`` throws, and ``AFError/multipartEncodingFailed(reason:)`` when the URL is
    ///   no file URL, the file exists or cannot be made, or writing fails.
    public func writeEncodedData(to fileURL: URL) throws {
        if let firstError { throw firstError }
        var file = try MultipartOutput.create(fileURL)
        try write { try file.write($0) }
        try file.finish()
    }

    private func write(to sink: (UnsafeRawBufferPointer) throws -> Void) throws {
        if let firstError { throw firstError }
        let framing = MultipartBoundary(boundary)
        for (index, part) in parts.enumerated() {
            try framing.opening(ofPart: index).withUnsafeBytes(sink)
            try part.head.withUnsafeBytes(sink)
            try part.source.read(into: sink)
        }
        try framing.closing(afterParts: parts.count).withUnsafeBytes(sink)
    }
}

extension UInt64 {
    /// The sum, or the largest number there is.
    fileprivate func addingUpToMaximum(_ other: UInt64) -> UInt64 {
        let (sum, hasOverflowed) = addingReportingOverflow(other)
        return hasOverflowed ? .max : sum
    }
}
