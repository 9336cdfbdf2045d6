public import Foundation
internal import NetwatchTransport

/// A `multipart/form-data` body (RFC 7578), as HTML forms send it.
///
/// ```swift
/// form.append(Data("Ada".utf8), withName: "name")
/// form.append(photoURL, withName: "photo")
/// ```
///
/// Parts are sent in the order in which they were added. Adding a part does not throw. An error in a part, for example
/// a missing file, is thrown by ``encode()`` and ``writeEncodedData(to:)``. After the first error, further parts are
/// dropped.
///
/// Use a form from one thread at a time. Both encoders block the thread while they read files and streams, so do not
/// call them on the main queue or in Swift's cooperative thread pool.
public final class MultipartFormData {
    /// The delimiter between the parts. The 64 random bits of a default boundary make it practically impossible that a
    /// part contains the boundary.
    public let boundary: String

    private var parts: [MultipartPart] = []
    private var firstError: (any Error)?

    /// Creates an empty form with a random boundary: `netwatch.boundary.` and 16 hexadecimal digits.
    public convenience init() {
        self.init(boundary: MultipartBoundary.random())
    }

    /// Creates an empty form.
    ///
    /// - Parameter boundary: The delimiter between the parts: a token (RFC 9110 §5.6.2) of at most 70 characters (RFC
    ///   2046 §5.1.1). If it is not such a token, encoding the form throws
    ///   ``AFError/MultipartEncodingFailureReason/bodyPartHeaderInvalid(name:value:)``. The boundary must not occur in
    ///   any part. The form does not check that.
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

    /// The total length of the contents of all parts in bytes, without headers and boundaries.
    ///
    /// If the sum exceeds `UInt64.max`, the value is `UInt64.max`. This can happen because a stream can be added with
    /// any stated length.
    public var contentLength: UInt64 {
        parts.reduce(0) { $0.addingUpToMaximum($1.source.length) }
    }

    /// The length of the whole body in bytes, computed without reading any part.
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
    /// Like browsers, the form writes line breaks and quotation marks in names as `%0D`, `%0A` and `%22` (WHATWG HTML,
    /// "multipart/form-data encoding algorithm"). A name with NUL, and a type with a control character, are errors:
    /// ``AFError/MultipartEncodingFailureReason/bodyPartHeaderInvalid(name:value:)``.
    ///
    /// - Parameters:
    ///   - data: The content.
    ///   - name: The name of the form's field.
    ///   - fileName: The file name for the server. Default: none.
    ///   - mimeType: The content type. Default: none, which means plain text (RFC 7578 §4.4).
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

    /// Adds a file under its own name, with the content type of its extension. For an unknown extension the type is
    /// `application/octet-stream`.
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
    /// This function checks the file's type and size. The contents are read when the form is encoded; until then the
    /// size must not change.
    ///
    /// - Parameters:
    ///   - fileURL: A readable regular file.
    ///   - name: The name of the form's field.
    ///   - fileName: The file name for the server. An empty name is an error:
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

    /// Adds the contents of a stream.
    ///
    /// - Parameters:
    ///   - stream: The stream. Encoding the form opens the stream, reads it to its end and closes it. A form with a
    ///     stream can therefore be encoded only once. Encoding it again fails with the underlying error
    ///     `URLError.requestBodyStreamExhausted`.
    ///   - length: The exact number of bytes that the stream provides.
    ///   - name: The name of the form's field.
    ///   - fileName: The file name for the server.
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

    /// Adds the contents of a stream with custom header fields.
    ///
    /// - Parameters:
    ///   - stream: The stream; see ``append(_:withLength:name:fileName:mimeType:)``.
    ///   - length: The exact number of bytes that the stream provides.
    ///   - headers: The part's header fields, which are written unchanged. RFC 7578 §4.2 requires a
    ///     `Content-Disposition` field with the name of the form's field. A field name that is not a token, an empty
    ///     value, and a value with a control character are errors:
    ///     ``AFError/MultipartEncodingFailureReason/bodyPartHeaderInvalid(name:value:)``.
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
    /// A form without parts consists of the closing boundary only, as in browsers. A form without streams can be
    /// encoded any number of times, with the same result.
    ///
    /// - Returns: The body.
    /// - Throws: ``AFError/multipartEncodingFailed(reason:)``, in these cases:
    ///   - A part was invalid when it was added. If there are several, the error of the first one is thrown.
    ///   - A file or stream cannot be read, or a file is no longer a regular file.
    ///   - A file or stream has another length than when it was added (``AFError/UnexpectedInputStreamLength``).
    public func encode() throws -> Data {
        var body = Data()
        // At most 16 MiB are reserved, because a stream can be added with any length.
        body.reserveCapacity(Int(min(encodedLength, 1 << 24)))
        try write { body.append(contentsOf: $0) }
        return body
    }

    /// Encodes the form into a new file. Files and streams are read in pieces of 64 KiB, so they need not fit into
    /// memory.
    ///
    /// If encoding fails, the new file is deleted.
    ///
    /// - Parameter fileURL: The file to create, readable only by its owner (mode 0600).
    /// - Throws: The errors of ``encode()``, and ``AFError/multipartEncodingFailed(reason:)`` if the URL is not a
    ///   file URL, the file exists or cannot be created, or writing fails.
    public func writeEncodedData(to fileURL: URL) throws {
        try write(to: fileURL, isNew: true)
    }

    /// Encodes the form into a new temporary file. The file is marked and locked before the form is written, so that a
    /// later process removes it if this process is killed meanwhile.
    ///
    /// - Parameter parent: The temporary directory.
    /// - Throws: The errors of ``writeEncodedData(to:)``.
    func writeTemporaryFile(in parent: String = TemporaryFiles.temporaryDirectory) throws -> TemporaryFile {
        let file = try temporaryFile(in: parent)
        try write(to: file.url, isNew: false)
        return file
    }

    private func temporaryFile(in parent: String) throws(AFError) -> TemporaryFile {
        do throws(PartialFile.Failure) { return try TemporaryFile(in: parent) } catch {
            let url = URL(fileURLWithPath: parent, isDirectory: true)
            throw AFError.multipartEncodingFailed(reason: .outputStreamCreationFailed(for: url))
        }
    }

    private func write(to fileURL: URL, isNew: Bool) throws {
        if let firstError { throw firstError }
        var file = try MultipartOutput.open(fileURL, isNew: isNew)
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
    /// Returns the sum, or the maximum value if it overflows.
    fileprivate func addingUpToMaximum(_ other: UInt64) -> UInt64 {
        let (sum, hasOverflowed) = addingReportingOverflow(other)
        return hasOverflowed ? .max : sum
    }
}

/// The delimiter between the parts of a form (RFC 2046 §5.1.1).
struct MultipartBoundary {
    private let text: String

    init(_ text: String) {
        self.text = text
    }

    /// Returns the text of a boundary with 64 random bits. Because they are unpredictable, no file can be crafted to
    /// contain the boundary.
    static func random() -> String { text(.random(in: 0...(.max))) }

    /// Returns `netwatch.boundary.` and 16 hexadecimal digits.
    static func text(_ bits: UInt64) -> String { String(format: "netwatch.boundary.%016llx", bits) }

    /// Whether the boundary is a token of at most 70 characters. Tokens need no quotation marks in the request's
    /// `Content-Type`.
    var isValid: Bool { HTTPToken.isValid(text) && text.utf8.count <= 70 }

    // These functions return data, because `count` of a string would count CR LF as one character.

    func opening(ofPart index: Int) -> Data {
        Data((index == 0 ? "--\(text)\r\n" : "\r\n--\(text)\r\n").utf8)
    }

    func closing(afterParts count: Int) -> Data {
        Data((count == 0 ? "--\(text)--\r\n" : "\r\n--\(text)--\r\n").utf8)
    }
}
