extension Result {
    /// The value of a success; `nil` for a failure.
    public var value: Success? {
        if case .success(let value) = self { value } else { nil }
    }

    /// The error of a failure; `nil` for a success.
    public var error: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }

    /// Whether this is a success.
    public var isSuccess: Bool { error == nil }

    /// Whether this is a failure.
    public var isFailure: Bool { !isSuccess }
}

extension Result {
    /// Returns the value of a success.
    ///
    /// - Throws: The error of a failure.
    public func unwrap() throws -> Success { try get() }

    /// Calls `body` with the value if this is a success.
    @discardableResult
    public func withValue(_ body: (Success) throws -> Void) rethrows -> Self {
        if case .success(let value) = self { try body(value) }
        return self
    }

    /// Calls `body` with the error if this is a failure.
    @discardableResult
    public func withError(_ body: (Failure) throws -> Void) rethrows -> Self {
        if case .failure(let error) = self { try body(error) }
        return self
    }

    /// Calls `body` if this is a success.
    @discardableResult
    public func ifSuccess(_ body: () throws -> Void) rethrows -> Self {
        if isSuccess { try body() }
        return self
    }

    /// Calls `body` if this is a failure.
    @discardableResult
    public func ifFailure(_ body: () throws -> Void) rethrows -> Self {
        if isFailure { try body() }
        return self
    }
}

extension Result where Failure == any Error {
    /// Creates a success with the value that `value` returns, or a failure with the error that it throws.
    @_disfavoredOverload  // `Result { try … }` means Swift's `init(catching:)`, which does the same.
    public init(value: () throws -> Success) {
        self.init(catching: value)
    }

    /// Creates a failure with an error, or a success with a value if the error is `nil`.
    init(_ error: (any Error)?, _ value: () -> Success) {
        self = error.map(Result.failure) ?? .success(value())
    }

    /// Returns the result with a transformed value, or with the error that `transform` throws.
    ///
    /// - Parameter transform: Transforms the value. Not called for a failure, which is returned unchanged.
    public func flatMap<T>(_ transform: (Success) throws -> T) -> Result<T, any Error> {
        Result<T, any Error> { try transform(get()) }
    }

    /// Returns the result that `transform` returns, or a failure with the error that it throws. Without this function,
    /// a closure that returns a result would create a result of a result.
    ///
    /// - Parameter transform: Transforms the value. Not called for a failure, which is returned unchanged.
    public func flatMap<T>(_ transform: (Success) throws -> Result<T, any Error>) -> Result<T, any Error> {
        Result<T, any Error> { try transform(get()).get() }
    }

    /// Returns the result with the error that `transform` returns or throws.
    ///
    /// - Parameter transform: Transforms the error. Not called for a success, which is returned unchanged.
    public func flatMapError<E: Error>(_ transform: (any Error) throws -> E) -> Self {
        flatMapError { error in
            do { return .failure(try transform(error)) } catch { return .failure(error) }
        }
    }
}

extension Result {
    /// `SUCCESS` or `FAILURE`. String interpolation uses Swift's own description of the enumeration instead.
    public var description: String { isSuccess ? "SUCCESS" : "FAILURE" }

    /// `SUCCESS: ` and the value, or `FAILURE: ` and the error.
    public var debugDescription: String {
        switch self {
        case .success(let value): "SUCCESS: \(value)"
        case .failure(let error): "FAILURE: \(error)"
        }
    }
}
