public import Foundation
public import NetwatchTransport

/// Errors that are netwatch's own. What the network does wrong is a `URLError`; see
/// ``Swift/Error/transferFailure``.
public enum AFError: Error {
    /// Why a response could not be turned into the value that was asked for.
    public enum ResponseSerializationFailureReason: Sendable {
        /// There was no response to take data from.
        case inputDataNil
    }

    /// Why the server was not trusted.
    public enum ServerTrustFailureReason: Sendable {
        /// Its certificate did not pass the evaluation against the system's authorities, with the host's
        /// name; libcurl's verdict is underneath.
        case defaultEvaluationFailed(TransferFailure)
    }

    /// The URL cannot be made.
    case invalidURL(url: any URLConvertible)
    /// The response could not be turned into the value that was asked for.
    case responseSerializationFailed(reason: ResponseSerializationFailureReason)
    /// The server could not be trusted, so nothing was sent.
    case serverTrustEvaluationFailed(reason: ServerTrustFailureReason)
    /// The request's last ``SessionManager`` reference was dropped before the request had ended. Keep the
    /// session for as long as its requests are to run.
    case sessionDeinitialized
}

extension AFError: LocalizedError {
    /// What happened, in English.
    public var errorDescription: String? {
        switch self {
        case .invalidURL(let url): "The URL is not valid: \(url)"
        case .responseSerializationFailed(.inputDataNil): "There is no response data to serialize."
        case .serverTrustEvaluationFailed(.defaultEvaluationFailed(let failure)):
            "The server is not trusted: \(failure.message)"
        case .sessionDeinitialized: "The session was dropped before the request had ended."
        }
    }
}

extension AFError {
    /// Whether the URL could not be made.
    public var isInvalidURLError: Bool {
        if case .invalidURL = self { true } else { false }
    }

    /// Whether the response could not be turned into a value.
    public var isResponseSerializationError: Bool {
        if case .responseSerializationFailed = self { true } else { false }
    }

    /// Whether the server could not be trusted.
    public var isServerTrustEvaluationError: Bool {
        if case .serverTrustEvaluationFailed = self { true } else { false }
    }

    /// Whether the request's session was dropped.
    public var isSessionDeinitializedError: Bool {
        if case .sessionDeinitialized = self { true } else { false }
    }

    /// The URL that could not be made.
    public var urlConvertible: (any URLConvertible)? {
        if case .invalidURL(let url) = self { url } else { nil }
    }
}
