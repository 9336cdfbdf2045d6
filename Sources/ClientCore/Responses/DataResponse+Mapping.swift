extension DataResponse {
    /// The same response with another value.
    ///
    /// - Parameter transform: Makes the value. It is not called for a failure, which stays as it is.
    public func map<T>(_ transform: (Value) -> T) -> DataResponse<T> {
        with(result.map(transform))
    }

    /// The same response with another value, or with the error that `transform` throws.
    ///
    /// - Parameter transform: Makes the value. It is not called for a failure, which stays as it is.
    public func flatMap<T>(_ transform: (Value) throws -> T) -> DataResponse<T> {
        with(result.transformed(transform))
    }

    /// ``flatMap(_:)`` by the name that Alamofire 5 has for it.
    public func tryMap<T>(_ transform: (Value) throws -> T) -> DataResponse<T> {
        flatMap(transform)
    }

    /// The same response with another error.
    ///
    /// - Parameter transform: Makes the error. It is not called for a success, which stays as it is.
    public func mapError<E: Error>(_ transform: (any Error) -> E) -> DataResponse {
        with(result.mapError(transform))
    }

    /// The same response with another error, that `transform` returns or throws.
    ///
    /// - Parameter transform: Makes the error. It is not called for a success, which stays as it is.
    public func flatMapError<E: Error>(_ transform: (any Error) throws -> E) -> DataResponse {
        with(result.errorTransformed(transform))
    }

    /// ``flatMapError(_:)`` by the name that Alamofire 5 has for it.
    public func tryMapError<E: Error>(_ transform: (any Error) throws -> E) -> DataResponse {
        flatMapError(transform)
    }
}
