extension Request {
    /// What a validation makes of a response.
    public enum ValidationResult: Sendable {
        /// The response will do.
        case success
        /// The response will not do; the error becomes the request's.
        case failure(any Error)
    }
}
