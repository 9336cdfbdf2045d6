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
    /// Returns the result with a transformed value, or with the error that `transform` throws. A failure is returned
    /// unchanged.
    func transformed<T>(_ transform: (Success) throws -> T) -> Result<T, any Error> {
        flatMap { value in Result<T, any Error> { try transform(value) } }
    }

    /// Returns the result with the error that `transform` returns or throws. A success is returned unchanged.
    func errorTransformed<E: Error>(_ transform: (any Error) throws -> E) -> Self {
        flatMapError { error in
            do { return .failure(try transform(error)) } catch { return .failure(error) }
        }
    }
}
