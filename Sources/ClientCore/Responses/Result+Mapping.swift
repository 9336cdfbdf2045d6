extension Result where Failure == any Error {
    /// A success made into another, or into a failure with what `transform` throws.
    func transformed<T>(_ transform: (Success) throws -> T) -> Result<T, any Error> {
        flatMap { value in Result<T, any Error> { try transform(value) } }
    }

    /// A failure made into another, with what `transform` returns or throws.
    func errorTransformed<E: Error>(_ transform: (any Error) throws -> E) -> Self {
        flatMapError { error in
            do { return .failure(try transform(error)) } catch { return .failure(error) }
        }
    }
}
