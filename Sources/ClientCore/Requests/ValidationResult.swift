extension Request {
    /// The result of validating a response.
    public enum ValidationResult: Sendable {
        /// The response is acceptable.
        case success
        /// The response is not acceptable. The error becomes the request's error.
        case failure(any Error)
    }
}
