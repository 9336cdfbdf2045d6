public import Foundation
public import FoundationNetworking

extension DataRequest {
    /// Says whether a response is acceptable. Called when a whole response has come, on the request's queue.
    public typealias Validation =
        @Sendable (URLRequest?, HTTPURLResponse, Data?) -> ValidationResult

    /// Adds a check of the response. Without one, any whole response is a success.
    ///
    /// Checks run in the order they were added, up to the first that fails; its error is the request's, which
    /// the retrier may be asked about.
    @discardableResult
    @preconcurrency
    public func validate(_ validation: @escaping Validation) -> Self {
        addValidator { outcome, response in
            validation(outcome.request, response, outcome.body.data)
        }
    }

    /// Fails the request when its status is none of those.
    @discardableResult
    public func validate(statusCode acceptable: some Sequence<Int>) -> Self {
        let acceptable = AcceptableStatusCodes(acceptable)
        return validate { _, response, _ in
            ResponseValidation.status(of: response, acceptable: acceptable)
        }
    }

    /// Fails the request when its response's body has none of those content types.
    ///
    /// An empty body has any type. `*` stands for any type or subtype; parameters are not compared.
    @discardableResult
    public func validate(contentType acceptable: some Sequence<String>) -> Self {
        let acceptable = Array(acceptable)
        return validate { _, response, data in
            ResponseValidation.contentType(of: response, acceptable: acceptable, body: data)
        }
    }

    /// Fails the request when its status is none of 200..<300, or the content type none that the request's
    /// `Accept` names.
    @discardableResult
    public func validate() -> Self {
        validate { _, response, _ in
            ResponseValidation.status(of: response, acceptable: ResponseValidation.defaultStatusCodes)
        }
        .validate { request, response, data in
            let acceptable = ResponseValidation.acceptableContentTypes(of: request)
            return ResponseValidation.contentType(of: response, acceptable: acceptable, body: data)
        }
    }
}
