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
        core.perform { core in
            core.addValidator { outcome in
                guard let response = outcome.response else { return nil }
                return validation(outcome.request, response, outcome.body.data).error
            }
        }
        return self
    }

    /// Fails the request when its status is none of those.
    @discardableResult
    public func validate<Statuses: Sequence & Sendable>(statusCode acceptable: Statuses) -> Self
    where Statuses.Element == Int {
        validate { _, response, _ in
            ResponseValidation.validate(statusCode: acceptable, response)
        }
    }

    /// Fails the request when its response's body has none of those content types.
    ///
    /// An empty body has any type. `*` stands for any type or subtype; parameters are not compared.
    @discardableResult
    public func validate<Types: Sequence & Sendable>(contentType acceptable: Types) -> Self
    where Types.Element == String {
        validate { _, response, data in
            ResponseValidation.validate(contentType: acceptable, response, isEmpty: data?.isEmpty ?? true)
        }
    }

    /// Fails the request when its status is none of 200..<300, or the content type none that the request's
    /// `Accept` names.
    @discardableResult
    public func validate() -> Self {
        validate(statusCode: 200..<300).validate { request, response, data in
            ResponseValidation.validate(
                contentType: ResponseValidation.acceptableTypes(request),
                response,
                isEmpty: data?.isEmpty ?? true
            )
        }
    }
}
