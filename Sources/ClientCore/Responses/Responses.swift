public import Foundation
public import FoundationNetworking

/// What came of a request, as it is.
public struct DefaultDataResponse: Sendable {
    /// The request that was sent, or `nil` when none could be made.
    public let request: URLRequest?
    /// The head of the response, also when the rest of it did not come.
    public let response: HTTPURLResponse?
    /// The body, as far as it came; `nil` when nothing was sent.
    public let data: Data?
    /// Why there is no whole response. A status of 4xx or 5xx is none.
    public let error: (any Error)?

    /// Puts a response together.
    ///
    /// - Parameters:
    ///   - request: The request that was sent.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: Why there is no whole response.
    public init(request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?) {
        self.request = request
        self.response = response
        self.data = data
        self.error = error
    }
}

/// What came of a request, with its body turned into a value.
public struct DataResponse<Value: Sendable>: Sendable {
    /// The request that was sent, or `nil` when none could be made.
    public let request: URLRequest?
    /// The head of the response, also when the rest of it did not come.
    public let response: HTTPURLResponse?
    /// The body, as far as it came; `nil` when nothing was sent.
    public let data: Data?
    /// The value, or why there is none.
    public let result: Result<Value, any Error>

    /// Puts a response together.
    ///
    /// - Parameters:
    ///   - request: The request that was sent.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - result: The value, or why there is none.
    public init(
        request: URLRequest?,
        response: HTTPURLResponse?,
        data: Data?,
        result: Result<Value, any Error>
    ) {
        self.request = request
        self.response = response
        self.data = data
        self.result = result
    }

    /// The value, if there is one.
    public var value: Value? { result.value }

    /// Why there is no value.
    public var error: (any Error)? { result.error }
}

extension Result {
    /// The value of a success.
    public var value: Success? {
        if case .success(let value) = self { value } else { nil }
    }

    /// The error of a failure.
    public var error: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }

    /// Whether this is a success.
    public var isSuccess: Bool { error == nil }

    /// Whether this is a failure.
    public var isFailure: Bool { !isSuccess }
}
