public import Foundation
public import FoundationNetworking

extension DownloadRequest {
    /// Says whether a response is acceptable. Called when a whole response has come and before the file is
    /// moved, on the request's queue.
    ///
    /// The second URL, the file's destination, is `nil` at that time: what is refused replaces nothing.
    public typealias Validation =
        @Sendable (URLRequest?, HTTPURLResponse, _ temporaryURL: URL?, _ destinationURL: URL?) ->
        ValidationResult

    /// Adds a check of the response. Without one, any whole response is a success.
    ///
    /// Checks run in the order they were added, up to the first that fails; its error is the request's, which
    /// the retrier may be asked about.
    @discardableResult
    @preconcurrency
    public func validate(_ validation: @escaping Validation) -> Self {
        addValidator { outcome, response in
            validation(outcome.request, response, outcome.body.temporaryURL, outcome.body.destinationURL)
        }
    }

    /// Fails the request when its status is none of those.
    @discardableResult
    public func validate(statusCode acceptable: some Sequence<Int>) -> Self {
        let acceptable = AcceptableStatusCodes(acceptable)
        return validate { _, response, _, _ in
            ResponseValidation.status(of: response, acceptable: acceptable)
        }
    }

    /// Fails the request when its response's body has none of those content types.
    ///
    /// An empty file has any type. `*` stands for any type or subtype; parameters are not compared.
    @discardableResult
    public func validate(contentType acceptable: some Sequence<String>) -> Self {
        let acceptable = Array(acceptable)
        return validate { _, response, file, _ in
            ResponseValidation.contentType(of: response, acceptable: acceptable, file: file)
        }
    }

    /// Fails the request when its status is none of 200..<300, or the content type none that the request's
    /// `Accept` names.
    @discardableResult
    public func validate() -> Self {
        validate { _, response, _, _ in
            ResponseValidation.status(of: response, acceptable: ResponseValidation.defaultStatusCodes)
        }
        .validate { request, response, file, _ in
            let acceptable = ResponseValidation.acceptableContentTypes(of: request)
            return ResponseValidation.contentType(of: response, acceptable: acceptable, file: file)
        }
    }
}
