public import Foundation
public import FoundationNetworking

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
