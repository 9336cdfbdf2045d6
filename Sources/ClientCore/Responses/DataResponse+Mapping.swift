extension DataResponse {
    /// Returns the response with a transformed value.
    ///
    /// - Parameter transform: Transforms the value. Not called for a failure, which is returned unchanged.
    public func map<T>(_ transform: (Value) -> T) -> DataResponse<T> {
        with(result.map(transform))
    }

    /// Returns the response with a transformed value, or with the error that `transform` throws.
    ///
    /// - Parameter transform: Transforms the value. Not called for a failure, which is returned unchanged.
    public func flatMap<T>(_ transform: (Value) throws -> T) -> DataResponse<T> {
        with(result.flatMap(transform))
    }

    /// Alamofire 5's name for ``flatMap(_:)``.
    public func tryMap<T>(_ transform: (Value) throws -> T) -> DataResponse<T> {
        flatMap(transform)
    }

    /// Returns the response with a transformed error.
    ///
    /// - Parameter transform: Transforms the error. Not called for a success, which is returned unchanged.
    public func mapError<E: Error>(_ transform: (any Error) -> E) -> DataResponse {
        with(result.mapError(transform))
    }

    /// Returns the response with the error that `transform` returns or throws.
    ///
    /// - Parameter transform: Transforms the error. Not called for a success, which is returned unchanged.
    public func flatMapError<E: Error>(_ transform: (any Error) throws -> E) -> DataResponse {
        with(result.flatMapError(transform))
    }

    /// Alamofire 5's name for ``flatMapError(_:)``.
    public func tryMapError<E: Error>(_ transform: (any Error) throws -> E) -> DataResponse {
        flatMapError(transform)
    }
}
