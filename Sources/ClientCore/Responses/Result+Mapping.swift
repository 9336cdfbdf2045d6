extension Result where Failure == any Error {
    /// Transforms a success; returns a failure if `transform` throws.
    func transformed<T>(_ transform: (Success) throws -> T) -> Result<T, any Error> {
        flatMap { value in Result<T, any Error> { try transform(value) } }
    }

    /// Transforms a failure with the error that `transform` returns or throws.
    func errorTransformed<E: Error>(_ transform: (any Error) throws -> E) -> Self {
        flatMapError { error in
            do { return .failure(try transform(error)) } catch { return .failure(error) }
        }
    }
}
