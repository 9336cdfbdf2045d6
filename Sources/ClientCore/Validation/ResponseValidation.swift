internal import Foundation
internal import FoundationNetworking
internal import Glibc

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
