public import Foundation
public import FoundationNetworking
internal import Glibc
internal import NetwatchTransport

extension BodyRequest {
    /// Fails the request if the status of its response is not in the sequence.
    @discardableResult
    public func validate(statusCode acceptable: some Sequence<Int>) -> Self {
        let acceptable = AcceptableStatusCodes(acceptable)
        return addValidator { ResponseValidation.status(of: $1, acceptable: acceptable) }
    }

    /// Fails the request if the content type of its response matches none of the given types.
    ///
    /// `*` stands for any type or subtype. Parameters, such as `charset`, are not compared. A response with an empty
    /// body is accepted whatever its type.
    @discardableResult
    public func validate(contentType acceptable: some Sequence<String>) -> Self {
        let acceptable = Array(acceptable)
        return validateContentType { _ in acceptable }
    }

    /// Fails the request if the status of its response is not in 200..<300, or if the request's `Accept` does not match
    /// the response's content type.
    ///
    /// ```swift
    /// do {
    ///     print(try await session.request("https://example.com/notes").validate().string)
    /// } catch AFError.responseValidationFailed(reason: .unacceptableStatusCode(let status)) {
    ///     print("the server responded with \(status)")
    /// }
    /// ```
    @discardableResult
    public func validate() -> Self {
        addValidator { ResponseValidation.status(of: $1, acceptable: ResponseValidation.defaultStatusCodes) }
            .validateContentType(ResponseValidation.acceptableContentTypes)
    }

    private func validateContentType(_ acceptable: @escaping @Sendable (URLRequest?) -> [String]) -> Self {
        addValidator { outcome, response in
            let (acceptable, body) = (acceptable(outcome.request), outcome.body)
            guard Content.self == URL.self else {
                return ResponseValidation.contentType(of: response, acceptable: acceptable, body: body.data)
            }
            let file = body.temporaryURL
            return ResponseValidation.contentType(of: response, acceptable: acceptable, file: file)
        }
    }
}

extension DataRequest {
    /// A check that decides whether a response is acceptable. Called on the request's queue when the response is
    /// complete.
    public typealias Validation =
        @Sendable (URLRequest?, HTTPURLResponse, Data?) -> ValidationResult

    /// Adds a check of the response. Without a check, every complete response is a success.
    ///
    /// Checks run in the order in which they were added, until one fails. The error of this check becomes the request's
    /// error, and the retrier may be called with it.
    ///
    /// ```swift
    /// struct MissingVersion: Error {}
    ///
    /// session.request("https://example.com/notes").validate { _, response, _ in
    ///     response.value(forHTTPHeaderField: "X-Version") == nil ? .failure(MissingVersion()) : .success
    /// }
    /// .responseData { print($0.result) }
    /// ```
    @discardableResult
    @preconcurrency
    public func validate(_ validation: @escaping Validation) -> Self {
        addValidator { outcome, response in
            validation(outcome.request, response, outcome.body.data)
        }
    }
}

extension DownloadRequest {
    /// A check that decides whether a response is acceptable. Called on the request's queue when the response is
    /// complete, before the file is moved.
    ///
    /// The second URL, the file's destination, is therefore always `nil`. A rejected response replaces no file.
    public typealias Validation =
        @Sendable (URLRequest?, HTTPURLResponse, _ temporaryURL: URL?, _ destinationURL: URL?) ->
        ValidationResult

    /// Adds a check of the response. Without a check, every complete response is a success.
    ///
    /// Checks run in the order in which they were added, until one fails. The error of this check becomes the request's
    /// error, and the retrier may be called with it.
    @discardableResult
    @preconcurrency
    public func validate(_ validation: @escaping Validation) -> Self {
        addValidator { outcome, response in
            validation(outcome.request, response, outcome.body.temporaryURL, outcome.body.destinationURL)
        }
    }
}

/// The checks that validate responses.
enum ResponseValidation {
    /// The status codes accepted by ``BodyRequest/validate()``.
    static let defaultStatusCodes = AcceptableStatusCodes(200..<300)

    static func status(
        of response: HTTPURLResponse,
        acceptable: AcceptableStatusCodes
    ) -> Request.ValidationResult {
        guard !acceptable.contains(response.statusCode) else { return .success }
        return failure(.unacceptableStatusCode(code: response.statusCode))
    }

    /// Checks the content type of a body in memory. An empty body matches every type.
    static func contentType(
        of response: HTTPURLResponse,
        acceptable: [String],
        body: Data?
    ) -> Request.ValidationResult {
        guard let body, !body.isEmpty else { return .success }
        return contentType(of: response, acceptable: acceptable)
    }

    /// Checks the content type of a downloaded file.
    ///
    /// - Parameter file: The file that contains the body. An empty file matches every type.
    static func contentType(
        of response: HTTPURLResponse,
        acceptable: [String],
        file: URL?
    ) -> Request.ValidationResult {
        guard let file else { return failure(.dataFileNil) }
        guard let size = size(ofFileAt: file) else { return failure(.dataFileReadFailed(at: file)) }
        return size == 0 ? .success : contentType(of: response, acceptable: acceptable)
    }

    /// Returns the types in the request's `Accept`; `*/*` if the field is missing. Types with a weight of 0 are left
    /// out, because the request excludes them (RFC 9110 §12.5.1).
    static func acceptableContentTypes(of request: URLRequest?) -> [String] {
        let accept = MediaTypeParameters.trimmed(request?.value(forHTTPHeaderField: "Accept") ?? "")
        guard !accept.isEmpty else { return ["*/*"] }
        return MediaTypeParameters.split(accept, at: ",")
            .map { MediaTypeParameters.trimmed($0) }
            .filter { !$0.isEmpty && weight(of: $0) != 0 }
    }

    private static func contentType(
        of response: HTTPURLResponse,
        acceptable: [String]
    ) -> Request.ValidationResult {
        let patterns = acceptable.compactMap(MediaRange.init)
        // A pattern that accepts every type also accepts a missing or malformed type.
        if patterns.contains(where: \.isWildcard) { return .success }
        guard let field = response.value(forHTTPHeaderField: "Content-Type") else {
            return failure(.missingContentType(acceptableContentTypes: acceptable))
        }
        if let type = MediaRange(field), patterns.contains(where: { $0.matches(type) }) { return .success }
        let found = MediaTypeParameters.trimmed(field.prefix { $0 != ";" })
        return failure(
            .unacceptableContentType(acceptableContentTypes: acceptable, responseContentType: found)
        )
    }

    private static func weight(of range: String) -> Double? {
        MediaTypeParameters.value(of: "q", in: range).flatMap(Double.init)
    }

    /// Returns the size of a file; `nil` if the file is not readable.
    ///
    /// The file is opened, because stat(2) does not show whether it is readable. With `O_NONBLOCK`, opening a FIFO does
    /// not wait for a writer.
    private static func size(ofFileAt url: URL) -> Int? {
        guard url.isFileURL else { return nil }
        let descriptor = open(url.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        return fstat(descriptor, &status) == 0 ? status.st_size : nil
    }

    private static func failure(
        _ reason: AFError.ResponseValidationFailureReason
    ) -> Request.ValidationResult {
        .failure(AFError.responseValidationFailed(reason: reason))
    }
}

/// The status codes that a validation accepts.
///
/// The sequence is read once, when the validation is added: a sequence may allow only one pass, but each retry of a
/// request is validated again.
struct AcceptableStatusCodes: Sendable {
    private let codes: Set<Int>

    /// - Parameter codes: Any finite sequence, or a range without an upper bound.
    init(_ codes: some Sequence<Int>) {
        // HTTP status codes have three digits (RFC 9110 §15). A range is clamped, because it may be endless.
        let all = 0..<1000
        switch codes {
        case let range as Range<Int>: self.codes = Set(range.clamped(to: all))
        case let range as ClosedRange<Int>: self.codes = Set(all.filter(range.contains))
        case let range as PartialRangeFrom<Int>: self.codes = Set(all.filter(range.contains))
        default: self.codes = Set(codes)
        }
    }

    func contains(_ code: Int) -> Bool { codes.contains(code) }
}

/// A media type or a pattern for media types, without parameters and in lower case.
struct MediaRange: Hashable {
    let type: String
    let subtype: String

    /// Parses a media type; parameters are ignored. Returns `nil` if the text is not one type and subtype (RFC 9110
    /// §8.3.1), for example a list of types.
    init?(_ field: String) {
        let essence = MediaTypeParameters.trimmed(field.prefix { $0 != ";" })
        let parts = essence.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ HTTPToken.isValid(String($0)) }) else { return nil }
        type = parts[0].lowercased()
        subtype = parts[1].lowercased()
    }

    /// Whether the pattern matches every type.
    var isWildcard: Bool { type == "*" && subtype == "*" }

    /// Returns whether a media type matches this pattern. `*` matches every type or subtype.
    func matches(_ other: MediaRange) -> Bool {
        (type == "*" || type == other.type) && (subtype == "*" || subtype == other.subtype)
    }
}
